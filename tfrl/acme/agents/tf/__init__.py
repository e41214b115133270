"""Actors, learners and agents in TensorFlow.

>>> import keras
>>> import numpy as np
>>> from tfrl.acme.agents.tf import actors
>>> actor = actors.FeedForwardActor(keras.layers.Dense(2, kernel_initializer="ones"))
>>> actor.select_action(np.array([1.0, 2.0], np.float32)).tolist()
[3.0, 3.0]
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
