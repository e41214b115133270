"""DreamerV3: an actor that learns in the imagination of a world model.

Hafner et al., "Mastering diverse control tasks through world models" (Nature, 2025;
arXiv:2301.04104).

>>> from tfrl.agents import dreamer
>>> from tfrl.environments import native
>>> from tfrl.utils import optimization
>>> environment = native.load("CartPole-v1", 1)
>>> agent = dreamer.DreamerAgent(
...     environment.time_step_spec(),
...     environment.action_spec(),
...     optimization.LaProp(4e-5),
...     sizes=dreamer.Sizes(deter=16, units=8, hidden=8, classes=4, depth=2),
... )
>>> sorted(agent.collect_policy.policy_state_spec)
['action', 'deter', 'stoch']
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
