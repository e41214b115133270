"""One reward of several objectives.

>>> import tensorflow as tf
>>> from tfrl.bandits import multi_objective
>>> scalarizer = multi_objective.LinearScalarizer([1.0, 2.0])
>>> scalarizer(tf.constant([[3.0, 4.0]])).numpy()
array([11.], dtype=float32)
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
