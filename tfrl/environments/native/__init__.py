"""Environments written in TensorFlow: batched, pure, and ready for XLA.

A loop that steps one of them calls no Python, so it can be one compiled program with
thousands of members. `load` makes the environments of Gymnasium's classic control, with
the same dynamics, limits and specs; `NativeEnvironment` runs your own `Dynamics`, which
consist of two pure functions and two specs.

>>> import tensorflow as tf
>>> from tfrl.environments import native
>>> native.names()
['Acrobot-v1', 'CartPole-v0', 'CartPole-v1', 'MountainCar-v0', 'MountainCarContinuous-v0', 'Pendulum-v1']
>>> environment = native.load("CartPole-v1", batch_size=1024, seed=0)
>>> environment.reset().observation.shape
TensorShape([1024, 4])
>>> @tf.function(jit_compile=True, autograph=False)
... def push_right():
...     for _ in range(5):
...         time_step = environment.step(tf.ones([1024], tf.int64))
...     return tf.reduce_sum(time_step.reward)
>>> float(push_right())
1024.0
"""  # noqa: E501

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
