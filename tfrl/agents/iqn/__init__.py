"""IQN: implicit quantile networks (Dabney et al., 2018).

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents import IqnAgent
>>> from tfrl.networks import ImplicitQuantileNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([4], tf.float32)
>>> action_spec = BoundedTensorSpec([], tf.int64, 0, 1)
>>> agent = IqnAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     ImplicitQuantileNetwork(observation_spec, action_spec),
...     keras.optimizers.Adam(1e-3),
...     num_quantiles=8,
...     num_target_quantiles=8,
...     gamma=0.99,
... )
>>> agent.train_sequence_length
2
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
