"""Contextual bandits: environments, agents and policies that XLA compiles.

A bandit is an environment whose every step is a whole round: it returns the reward of
the action, and the observation of the next round. Drivers, loops and metrics know such
environments by `is_bandit`. The arms and the models of an agent are an axis of a
tensor.

>>> from tfrl import bandits
>>> bandits.environments.load("WheelBandit-v0").is_bandit
True
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
