"""R2D2: recurrent replay distributed DQN (Kapturowski et al., 2019).

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents import R2d2Agent
>>> from tfrl.networks import QRnnNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([4], tf.float32)
>>> action_spec = BoundedTensorSpec([], tf.int64, 0, 1)
>>> agent = R2d2Agent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     QRnnNetwork(observation_spec, action_spec, lstm_size=(16,)),
...     keras.optimizers.Adam(1e-3),
...     burn_in_length=10,
... )
>>> agent.collect_data_spec.policy_info["policy_state"][0].shape.as_list()
[16]
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
