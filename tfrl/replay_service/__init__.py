"""Replay in a separate server process, with Reverb's API.

With `from tfrl import replay_service as reverb`, code written for Reverb runs. It has
tables with selectors and rate limiters in a server process, writers that insert
overlapping trajectories, and `tf.data` datasets that sample them, from any host.

>>> from tfrl import replay_service as reverb
>>> server = reverb.Server([reverb.Table.queue("steps", max_size=10)])
>>> client = reverb.Client(f"localhost:{server.port}")
>>> with client.trajectory_writer(num_keep_alive_refs=2) as writer:
...     for step in range(3):
...         writer.append({"x": float(step)})
...         if step >= 1:
...             writer.create_item("steps", 1.0, {"x": writer.history["x"][-2:]})
>>> [item.data[0].tolist() for item in client.sample("steps", 2, emit_timesteps=False)]
[[0.0, 1.0], [1.0, 2.0]]
>>> server.stop()
"""

from typing import Any

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
# Reverb's names of these modules.
_ALIASES = {"selectors": "item_selectors", "structured": "structured_writer"}
__all__ += sorted(_ALIASES)
# Names of Reverb's first releases, and those of its later ones.
_GONE = {
    "ReplayDataset": (
        "TimestepDataset, with the same server_address, table, dtypes and shapes, or "
        "TrajectoryDataset for whole items"
    ),
    "distributions": "selectors",
}


def __getattr__(name: str) -> Any:
    if name in _GONE:
        raise AttributeError(
            f"reverb.{name}: only Reverb's first releases have it; use {_GONE[name]}."
        )
    return _load(_ALIASES.get(name, name))
