"""Checkpoints of training, and snapshots of networks."""

import keras
import tensorflow as tf

from tfrl.savers.checkpointer import Checkpointer as Checkpointer
from tfrl.savers.checkpointing_runner import CheckpointingRunner as CheckpointingRunner
from tfrl.savers.saveable import SaveableAdapter as SaveableAdapter
from tfrl.savers.saveable import TFSaveable as TFSaveable
from tfrl.savers.snapshotter import Snapshot as Snapshot
from tfrl.savers.snapshotter import Snapshotter as Snapshotter
from tfrl.savers.snapshotter import make_snapshot as make_snapshot

PythonState = tf.train.experimental.PythonState
Checkpointable = tf.Module | tf.Variable | keras.Layer | PythonState
