"""IMPALA (Espeholt et al., 2018): an actor-critic that learns from older policies.

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents.impala import ImpalaAgent
>>> from tfrl.agents.ppo import ppo_networks
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([4], tf.float32)
>>> action_spec = BoundedTensorSpec([], tf.int64, 0, 1)
>>> actor_net, value_net = ppo_networks.create_networks(observation_spec, action_spec)
>>> agent = ImpalaAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     keras.optimizers.Adam(1e-3),
...     actor_net,
...     value_net,
... )
>>> sorted(agent.collect_data_spec.policy_info["dist_params"])
['logits']
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
