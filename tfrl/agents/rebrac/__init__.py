"""ReBRAC: TD3 near the recorded actions, in actor and critics (Tarasov et al., 2023).

>>> import keras
>>> import tensorflow as tf
>>> from tfrl import networks
>>> from tfrl.agents.rebrac import RebracAgent
>>> from tfrl.networks.layers import bodies
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([3], tf.float32)
>>> action_spec = BoundedTensorSpec([1], tf.float32, -2, 2)
>>> specs = (observation_spec, action_spec)
>>> agent = RebracAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     networks.ActorNetwork(*specs, (64, 64)),
...     networks.CriticNetwork(
...         specs, joint_fc_layer_params=(64, 64), body=bodies.layer_normed
...     ),
...     actor_optimizer=keras.optimizers.Adam(1e-3),
...     critic_optimizer=keras.optimizers.Adam(1e-3),
...     actor_update_period=2,
...     target_update_period=2,
...     target_update_tau=0.005,
...     gamma=0.99,
... )
>>> agent.initialize()
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
