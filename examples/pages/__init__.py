"""Whole algorithms, each on one page to read from top to bottom, and to change."""
