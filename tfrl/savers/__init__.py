"""Saves and restores checkpoints, and saves networks as independent programs.

`Checkpointer` saves a dictionary of objects every few minutes, as Acme's does.
`whole_checkpoints.Checkpointer`, which it uses, saves when its `save` is called, like
TF-Agents' `utils.common.Checkpointer` does.

>>> import tempfile
>>> import tensorflow as tf
>>> from tfrl import savers
>>> weights = tf.Variable([1.0, 2.0])
>>> directory = tempfile.mkdtemp()
>>> savers.whole_checkpoints.Checkpointer(directory, weights=weights).save(0)[-6:]
'ckpt-0'
>>> weights.assign([0.0, 0.0]).numpy().tolist()
[0.0, 0.0]
>>> savers.whole_checkpoints.Checkpointer(directory, weights=weights).checkpoint_exists
True
>>> weights.numpy().tolist()
[1.0, 2.0]
>>> checkpointer = savers.Checkpointer({"weights": weights}, directory=directory)
>>> [checkpointer.save() for _ in range(3)]
[True, False, False]
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
