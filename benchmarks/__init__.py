"""Ratios against peers, in one run: `make bench`, or `python -m benchmarks.run --help`."""
