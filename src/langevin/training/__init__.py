"""The only training loop, and all that runs it."""
