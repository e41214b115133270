"""Optimizers, and numbers that follow a schedule of `keras.optimizers`.

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.utils.optimization import schedules
>>> decay = keras.optimizers.schedules.PolynomialDecay(1.0, 100, 0.5)
>>> epsilon = schedules.follow("epsilon", decay, step=tf.Variable(50))
>>> float(schedules.current_value(epsilon))
0.75
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
