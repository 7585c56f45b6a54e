"""What lies on disk: one writer, many readers."""
