"""files → LongTensor batches."""
