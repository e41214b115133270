"""Categorical DQN, C51 (Bellemare et al., 2017).

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents import CategoricalDqnAgent
>>> from tfrl.networks import CategoricalQNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([4], tf.float32)
>>> action_spec = BoundedTensorSpec([], tf.int64, 0, 1)
>>> agent = CategoricalDqnAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     CategoricalQNetwork(observation_spec, action_spec, num_atoms=51),
...     keras.optimizers.Adam(1e-3),
...     min_q_value=0.0,
...     max_q_value=100.0,
...     gamma=0.99,
... )
>>> agent.train_sequence_length
2
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
