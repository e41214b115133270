"""Losses for policies and critics.

>>> import tensorflow as tf
>>> from tfrl.acme.tf import losses
>>> losses.huber(tf.constant([0.5, 2.0])).numpy().tolist()
[0.125, 1.5]
>>> losses.mpo.MPO is losses.MPO
True
"""

import lazy_loader

# `losses.dpg` is the function, also after an import of the module of that name.
from tfrl.acme.tf.losses.dpg import dpg as dpg
from tfrl.acme.tf.losses.huber import huber as huber

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
