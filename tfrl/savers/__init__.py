"""Saves and restores checkpoints, and encodes nests as bytes.

`Checkpointer` saves when its `save` is called; it is TF-Agents'
`utils.common.Checkpointer`. Acme's, which saves every few minutes, calls it.

>>> import tempfile
>>> import tensorflow as tf
>>> from tfrl import savers
>>> weights = tf.Variable([1.0, 2.0])
>>> directory = tempfile.mkdtemp()
>>> savers.Checkpointer(directory, weights=weights).save(0)[-6:]
'ckpt-0'
>>> weights.assign([0.0, 0.0]).numpy().tolist()
[0.0, 0.0]
>>> savers.Checkpointer(directory, weights=weights).checkpoint_exists
True
>>> weights.numpy().tolist()
[1.0, 2.0]
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
