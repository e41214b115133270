"""Acme's own tree: a program for Acme runs after one rename, `acme` to `tfrl.acme`.

Names, arguments and meanings are the same as in the TensorFlow half of Acme 0.4, on
Keras 3 and on `tfrl.replay_service`. Parts that the rest of tfrl uses too, such as
specs, loggers and savers, are the same objects here. Nothing outside this tree imports
it.

>>> import numpy as np
>>> from tfrl import acme
>>> from tfrl.acme.utils import loggers
>>> from tfrl.environments import suite_gym
>>> class PushesRight(acme.Actor):
...     def select_action(self, observation): return np.int64(1)
...     def observe_first(self, timestep): pass
...     def observe(self, action, next_timestep): pass
...     def update(self, wait=False): pass
>>> logger = loggers.InMemoryLogger()
>>> environment = suite_gym.load("CartPole-v1")
>>> acme.EnvironmentLoop(environment, PushesRight(), logger=logger).run(num_episodes=2)
>>> [row["episodes"] for row in logger.data]
[1, 2]
"""

from tfrl import imports
from tfrl.version import __version__ as __version__

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
