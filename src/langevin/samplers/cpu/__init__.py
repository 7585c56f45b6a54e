"""The updates compiled for the CPU, with the bits of the plain torch functions."""
