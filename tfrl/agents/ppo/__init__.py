"""Proximal Policy Optimization (Schulman et al., 2017).

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents.ppo import PPOClipAgent, ppo_networks
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([4], tf.float32)
>>> action_spec = BoundedTensorSpec([], tf.int64, 0, 1)
>>> actor_net, value_net = ppo_networks.create_networks(observation_spec, action_spec)
>>> agent = PPOClipAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     keras.optimizers.Adam(3e-4, epsilon=1e-5),
...     actor_net,
...     value_net,
...     importance_ratio_clipping=0.2,
...     num_epochs=1,
...     use_gae=True,
...     use_td_lambda_return=True,
...     gradient_clipping=0.5,
...     compute_value_and_advantage_in_train=False,
...     update_normalizers_in_train=False,
... )
>>> sorted(agent.training_data_spec.policy_info)
['advantage', 'dist_params', 'return', 'value_prediction']
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
