"""Gymnasium's environments as `PyEnvironment`s: wrapper, vectors, state and rendering.

>>> import gymnasium
>>> from tfrl.environments.gymnasium import wrapper
>>> environment = wrapper.GymnasiumWrapper(gymnasium.make("CartPole-v1"))
>>> environment.reset().observation.dtype
dtype('float32')
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
