"""Wrappers: environments that change what another environment says or takes.

`base` hands everything on. The others change an episode's time (`episodes`), count and
measure (`monitoring`), change the values of actions (`action_values`) or their form
(`action_forms`), or change observations (`observations`, `history`, `goal_replay`).
`numpy_state` lets a checkpoint hold an environment.

All of them take single and batched environments, unless they say otherwise. Each
wrapper's own state is part of its `get_state`, so a chain of them goes on exactly where
it was saved.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
