"""Compares tfrl's speed with its peers': see `python -m benchmarks --help`."""
