"""Replay as a server of its own, with Reverb's API.

`from tfrl import replay_service as reverb`, and code written for Reverb runs: tables
with selectors and rate limiters in a server process, writers that insert overlapping
trajectories, and `tf.data` datasets that sample them, from this host or another.
"""

from typing import Any

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
# Names that Reverb gives to its modules.
_ALIASES = {"selectors": "item_selectors", "structured": "structured_writer"}
__all__ += sorted(_ALIASES)


def __getattr__(name: str) -> Any:
    return _load(_ALIASES.get(name, name))
