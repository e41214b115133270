"""Policies, which map time steps to actions.

A `TFPolicy` works on batches of tensors, eagerly and inside a `tf.function`; a
`PyPolicy` works on NumPy arrays; `PyTFEagerPolicy` turns the first into the second.
`PolicySaver` writes a policy as a SavedModel that acts with TensorFlow alone.

>>> import tensorflow as tf
>>> from tfrl.policies import RandomTFPolicy
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> policy = RandomTFPolicy(
...     time_step.time_step_spec(tf.TensorSpec([4], tf.float32)),
...     BoundedTensorSpec([], tf.int64, 0, 1),
... )
>>> step = time_step.restart(tf.zeros([3, 4]), batch_size=3)
>>> policy.action(step).action.shape
TensorShape([3])
>>> bool(tf.reduce_all(policy.action(step, seed=1).action
...                    == policy.action(step, seed=1).action))
True
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
