"""Behavioural cloning: supervised learning of recorded actions.

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents.behavioral_cloning import BehavioralCloningAgent
>>> from tfrl.networks import QNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([4], tf.float32)
>>> action_spec = BoundedTensorSpec([], tf.int64, 0, 1)
>>> agent = BehavioralCloningAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     QNetwork(observation_spec, action_spec),
...     keras.optimizers.Adam(1e-3),
... )
>>> agent.train_sequence_length is None  # single frames, or sequences of any length
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
