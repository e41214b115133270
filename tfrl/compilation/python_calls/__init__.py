"""Calls from programs into Python: plain graphs, compiled by XLA, and on a GPU."""
