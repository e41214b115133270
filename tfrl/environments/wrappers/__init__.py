"""Wrappers, which change another environment's observations or actions.

`base` passes all calls on. The others change an episode's length (`episodes`), count
and measure (`monitoring`), change actions (`actions`), or change observations
(`observations`, `history`). `numpy_state` lets a checkpoint save an environment.

All of them take single and batched environments, unless they say otherwise. Each
wrapper's own state is part of its `get_state`, so a restored chain of wrappers
continues exactly where it was saved.

>>> from tfrl.environments import suite_gym, wrappers
>>> environment = wrappers.HistoryWrapper(
...     wrappers.ActionDiscretizeWrapper(suite_gym.load("Pendulum-v1"), num_actions=5),
...     history_length=3,
... )
>>> int(environment.action_spec().maximum)
4
>>> environment.reset().observation.shape
(3, 3)
>>> counted = wrappers.RunStats(environment)
>>> _ = counted.reset(), counted.step(2)
>>> int(counted.total_steps)
1
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
