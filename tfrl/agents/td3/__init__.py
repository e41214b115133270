"""Twin delayed deep deterministic policy gradient (Fujimoto et al., 2018).

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents.td3 import Td3Agent
>>> from tfrl.networks import ActorNetwork, CriticNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([3], tf.float32)
>>> action_spec = BoundedTensorSpec([1], tf.float32, -2, 2)
>>> agent = Td3Agent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     ActorNetwork(observation_spec, action_spec, (64, 64)),
...     CriticNetwork((observation_spec, action_spec), joint_fc_layer_params=(64, 64)),
...     actor_optimizer=keras.optimizers.Adam(1e-3),
...     critic_optimizer=keras.optimizers.Adam(1e-3),
...     target_update_tau=0.005,
...     target_update_period=2,
...     actor_update_period=2,
...     gamma=0.99,
... )
>>> agent.initialize()
>>> agent.train_sequence_length
2
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
