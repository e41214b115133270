"""How weights get from the learner to the actors, and how old they are there.

>>> import tensorflow as tf
>>> from tfrl.distribute.weights import weight_versions
>>> lags = weight_versions.Lags()
>>> lags.count(tf.constant([7, 7, 9], tf.int64), train_step=tf.constant(10, tf.int64))
>>> weight_versions.percentiles(lags.counts(), [0, 50, 100]).tolist()
[1.0, 3.0, 3.0]
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
