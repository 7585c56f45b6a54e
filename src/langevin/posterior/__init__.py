"""samples → averaged p, uncertainty."""
