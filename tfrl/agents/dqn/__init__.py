"""Deep Q-learning (Mnih et al., 2015) and Double DQN (van Hasselt et al., 2016).

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents.dqn import DdqnAgent
>>> from tfrl.networks import QNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([4], tf.float32)
>>> action_spec = BoundedTensorSpec([], tf.int64, 0, 1)
>>> agent = DdqnAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     q_network=QNetwork(observation_spec, action_spec),
...     optimizer=keras.optimizers.Adam(1e-3),
...     n_step_update=3,
...     target_update_tau=0.01,
...     gamma=0.99,
... )
>>> agent.initialize()
>>> agent.train_sequence_length
4
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
