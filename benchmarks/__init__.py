"""Measurements of speed, as ratios of runs side by side."""
