"""Agents that act by a given policy and learn nothing, as baselines.

>>> import tensorflow as tf
>>> from tfrl.agents.random import RandomAgent
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> agent = RandomAgent(
...     time_step.time_step_spec(tf.TensorSpec([4], tf.float32)),
...     BoundedTensorSpec([], tf.int64, 0, 1),
... )
>>> float(agent.train(experience=()).loss), int(agent.train_step_counter)
(0.0, 1)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
