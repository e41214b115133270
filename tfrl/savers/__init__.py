"""Saves checkpoints, and restores them to resume an interrupted run.

>>> import tempfile
>>> import tensorflow as tf
>>> from tfrl.savers import checkpointing
>>> weights = tf.Variable([1.0, 2.0])
>>> directory = tempfile.mkdtemp()
>>> _ = checkpointing.Checkpointer(directory, weights=weights).save(0)
>>> weights.assign([0.0, 0.0]).numpy().tolist()
[0.0, 0.0]
>>> checkpointing.Checkpointer(directory, weights=weights).checkpoint_exists
True
>>> weights.numpy().tolist()
[1.0, 2.0]
"""
