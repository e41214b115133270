"""Soft Actor-Critic (Haarnoja et al., 2018).

The policy's projection network keeps actions inside their bounds:

>>> import tensorflow as tf
>>> from tfrl.agents.sac import TanhNormalProjectionNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> projection = TanhNormalProjectionNetwork(BoundedTensorSpec([2], tf.float32, -3, 3))
>>> distribution, _ = projection(tf.ones([5, 8]), outer_rank=1)
>>> bool(tf.reduce_all(tf.abs(distribution.sample()) <= 3.0))
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
