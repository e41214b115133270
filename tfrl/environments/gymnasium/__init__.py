"""Gymnasium's environments as `PyEnvironment`s: wrapper, autoreset and rendering.

>>> import gymnasium
>>> from tfrl.environments.gymnasium import wrapper
>>> environment = wrapper.GymnasiumWrapper(gymnasium.make("CartPole-v1"))
>>> environment.reset().observation.dtype
dtype('float32')
"""
