"""Environments: the base classes, loaders for Gymnasium and other suites, wrappers.

A `PyEnvironment` takes and returns NumPy arrays, a `TFEnvironment` tensors;
`TFPyEnvironment` turns the first into the second. `suite_gym.load` makes one of
Gymnasium's environments, `gymnasium.vector_py_environment.load` a batch of them. The
environments in `native` are written in TensorFlow, so that XLA can compile a loop
around them.

>>> from tfrl.environments import suite_gym, tf_py_environment
>>> environment = suite_gym.load("CartPole-v1")
>>> environment.action_spec()
BoundedArraySpec(shape=(), dtype=dtype('int64'), name='action', minimum=0, maximum=1)
>>> environment.reset().observation.shape
(4,)
>>> tf_environment = tf_py_environment.TFPyEnvironment(environment)
>>> tf_environment.reset().observation.shape  # always batched
TensorShape([1, 4])
>>> tf_environment.step([1]).reward.numpy().tolist()
[1.0]
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
