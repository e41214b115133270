"""Adders, which receive the steps of an actor and store them.

`tfrl.acme.adders.reverb` has the adders that write to a replay server; the adders here
wrap other adders.

>>> import dm_env
>>> from tfrl.acme import adders
>>> class Prints(adders.Adder):
...     def end_episode(self, timeout_ms=None): pass
...     def reset(self, timeout_ms=None): pass
...     def add_first(self, timestep): print("first", timestep.observation)
...     def add(self, action, next_timestep, extras=()): print(action, extras)
>>> adder = adders.ForkingAdder([Prints(), adders.IgnoreExtrasAdder(Prints())])
>>> adder.add_first(dm_env.restart(observation=0.0))
first 0.0
first 0.0
>>> adder.add(1, dm_env.transition(reward=1.0, observation=0.1), extras="logits")
1 logits
1 ()
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
