"""REINFORCE (Williams, 1992), with an optional state-value baseline.

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents.reinforce import ReinforceAgent
>>> from tfrl.networks import ActorDistributionNetwork, ValueNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([4], tf.float32)
>>> action_spec = BoundedTensorSpec([], tf.int64, 0, 1)
>>> agent = ReinforceAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     actor_network=ActorDistributionNetwork(observation_spec, action_spec),
...     optimizer=keras.optimizers.Adam(1e-3),
...     value_network=ValueNetwork(observation_spec),
... )
>>> agent.initialize()
>>> agent.train_sequence_length is None  # whole episodes
True
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
