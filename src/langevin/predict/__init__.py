"""The door, and what answers behind it."""
