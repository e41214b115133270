"""Directories for the outputs of a run."""

from tfrl.system.paths import process_path as process_path
