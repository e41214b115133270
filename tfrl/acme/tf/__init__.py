"""The half of Acme that is in TensorFlow: networks, losses, savers and helpers.

>>> import tensorflow as tf
>>> from tfrl.acme.tf import losses, networks
>>> from tfrl.acme.tf import utils as tf2_utils
>>> torso = networks.LayerNormMLP((4,), activate_final=True)
>>> tf2_utils.create_variables(torso, [tf.TensorSpec([3])]).shape
TensorShape([4])
>>> losses.huber(tf.constant([0.5, 2.0])).numpy().tolist()
[0.125, 1.5]
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
