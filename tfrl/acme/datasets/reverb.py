"""Datasets of the items that adders write to a replay server."""

from tfrl.datasets.reverb import make_reverb_dataset as make_reverb_dataset
