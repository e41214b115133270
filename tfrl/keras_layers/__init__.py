"""Small Keras layers that networks need and Keras does not have.

>>> import tensorflow as tf
>>> from tfrl.keras_layers import BiasLayer
>>> layer = BiasLayer(bias_initializer="ones")
>>> layer(tf.zeros([2, 3])).numpy().tolist()
[[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
