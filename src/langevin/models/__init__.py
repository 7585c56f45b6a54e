"""What foresees: batches → log-probabilities."""
