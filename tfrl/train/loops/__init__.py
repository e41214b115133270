"""Loops that train in calls of one compiled function, and their parts.

>>> import tensorflow as tf
>>> from tfrl.train.loops import iteration_transform
>>> transform = iteration_transform.IterationTransform()
>>> start = tf.constant(0)
>>> (total,) = transform.repeat(3, lambda i, total: (total + i,), (start,))
>>> int(total)  # 0 + 1 + 2, which a sweep adds up for all of its members
3
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
