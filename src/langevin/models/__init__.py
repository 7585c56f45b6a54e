"""batches → logits."""
