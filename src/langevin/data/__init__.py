"""Files, texts and pictures → tokens → batches."""
