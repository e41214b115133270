"""Helpers for variables, nests, optimizers, seeds and the like.

>>> import tensorflow as tf
>>> from tfrl.utils import common, nest_utils
>>> spec = {"x": tf.TensorSpec([2], tf.float32)}
>>> batch = {"x": tf.ones([5, 2])}
>>> nest_utils.is_batched_nested_tensors(batch, spec)
True
>>> nest_utils.unstack_nested_tensors(batch, spec)[0]["x"].numpy().tolist()
[1.0, 1.0]
>>> source, target = tf.Variable([1.0]), tf.Variable([0.0])
>>> _ = common.soft_variables_update([source], [target], tau=0.25)
>>> target.numpy().tolist()
[0.25]
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
