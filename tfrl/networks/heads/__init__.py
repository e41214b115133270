"""The last layers of networks: action values, a policy and a value, distributions.

>>> import tensorflow as tf
>>> from tfrl.networks.heads import value_head
>>> logits, value = value_head.PolicyValueHead(num_actions=3)(tf.zeros([7, 64]))
>>> logits.shape, value.shape
(TensorShape([7, 3]), TensorShape([7]))
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
