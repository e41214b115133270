"""Distributed distributional deterministic policy gradients (Barth-Maron et al., 2018).

>>> import keras
>>> import tensorflow as tf
>>> from tfrl import networks
>>> from tfrl.agents.d4pg import D4pgAgent
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([3], tf.float32)
>>> action_spec = BoundedTensorSpec([1], tf.float32, -2, 2)
>>> critic_network = networks.Sequential(
...     [
...         networks.CriticMultiplexer(),
...         networks.LayerNormMLP([64, 64], activate_final=True),
...         networks.DiscreteValuedHead(vmin=-1600.0, vmax=0.0, num_atoms=51),
...     ]
... )
>>> agent = D4pgAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     networks.ActorNetwork(observation_spec, action_spec, (64, 64)),
...     critic_network,
...     actor_optimizer=keras.optimizers.Adam(1e-3),
...     critic_optimizer=keras.optimizers.Adam(1e-3),
... )
>>> agent.initialize()
>>> agent.train_sequence_length
6
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
