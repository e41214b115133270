"""Q-learning without replay and without a target network (Gallici et al., 2024).

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents.pqn import PqnAgent
>>> from tfrl.networks import QNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([4], tf.float32)
>>> action_spec = BoundedTensorSpec([], tf.int64, 0, 1)
>>> agent = PqnAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     QNetwork(
...         observation_spec, action_spec, fc_layer_params=(120, 84), layer_norm=True
...     ),
...     keras.optimizers.Adam(1e-3),
... )
>>> sorted(agent.training_data_spec.policy_info)
['return']
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
