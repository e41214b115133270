"""Measurements of speed, as ratios of runs side by side."""

import examples  # noqa: F401  Sets TensorFlow up as for the examples.
