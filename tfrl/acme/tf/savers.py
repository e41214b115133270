"""Checkpoints of what trains, and snapshots of networks."""

from tfrl.savers.checkpointer import Checkpointer as Checkpointer
from tfrl.savers.checkpointing_runner import CheckpointingRunner as CheckpointingRunner
from tfrl.savers.saveable import SaveableAdapter as SaveableAdapter
from tfrl.savers.saveable import TFSaveable as TFSaveable
from tfrl.savers.snapshotter import Snapshotter as Snapshotter
