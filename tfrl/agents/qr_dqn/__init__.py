"""QR-DQN: DQN with quantile regression (Dabney et al., 2018).

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents import QrDqnAgent
>>> from tfrl.networks import QuantileQNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([4], tf.float32)
>>> action_spec = BoundedTensorSpec([], tf.int64, 0, 1)
>>> agent = QrDqnAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     QuantileQNetwork(observation_spec, action_spec, num_quantiles=10),
...     keras.optimizers.Adam(1e-3),
...     gamma=0.99,
... )
>>> agent.train_sequence_length
2
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
