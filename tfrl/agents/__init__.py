"""The algorithms: one folder each, all with the `TFAgent` interface.

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents import DqnAgent
>>> from tfrl.networks import QNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([4], tf.float32)
>>> action_spec = BoundedTensorSpec([], tf.int64, 0, 1)
>>> agent = DqnAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     q_network=QNetwork(observation_spec, action_spec),
...     optimizer=keras.optimizers.Adam(1e-3),
...     gamma=0.99,
...     target_update_tau=0.02,
... )
>>> agent.initialize()
>>> agent.collect_data_spec._fields[:3]
('step_type', 'observation', 'action')
>>> agent.train_sequence_length  # the num_steps to ask of a replay buffer
2
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
