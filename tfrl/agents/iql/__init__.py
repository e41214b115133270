"""Implicit Q-learning (Kostrikov et al., 2021).

>>> import keras
>>> import tensorflow as tf
>>> from tfrl import networks
>>> from tfrl.agents.iql import IqlAgent
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> specs = tf.TensorSpec([3], tf.float32), BoundedTensorSpec([1], tf.float32, -2, 2)
>>> agent = IqlAgent(
...     time_step.time_step_spec(specs[0]),
...     specs[1],
...     networks.CriticNetwork(specs, joint_fc_layer_params=(64, 64)),
...     networks.ValueNetwork(specs[0], fc_layer_params=(64, 64)),
...     networks.ActorDistributionNetwork(*specs, fc_layer_params=(64, 64)),
...     actor_optimizer=keras.optimizers.Adam(3e-4),
...     critic_optimizer=keras.optimizers.Adam(3e-4),
...     value_optimizer=keras.optimizers.Adam(3e-4),
... )
>>> agent.initialize()
>>> agent.train_sequence_length
2
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
