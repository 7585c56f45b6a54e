"""Crashes at every file operation of everything that writes, and what is left to go on from."""
