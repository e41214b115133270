"""Layers inside networks: dense ones, torsos, embeddings, preprocessing.

>>> import tensorflow as tf
>>> from tfrl.networks.layers import preprocessing
>>> preprocessing.OneHot(minimum=[1], maximum=[3])(tf.constant([[1], [3]])).numpy()
array([[1., 0., 0.],
       [0., 0., 1.]], dtype=float32)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
