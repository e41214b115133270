"""Tables of items, with priorities, selectors and rate limiters, in NumPy alone.

An item has a key, a priority and a payload. The payload is two integers by which the
rest of the engine finds the item's steps. Nothing here knows about steps or sessions.

>>> import numpy as np
>>> from tfrl.replay_service import item_selectors, rate_limiters
>>> from tfrl.replay_service.engine.tables.engine_table import EngineTable
>>> table = EngineTable(
...     {
...         "name": "t",
...         "max_size": 10,
...         "sampler": item_selectors.MaxHeap().to_config(),
...         "remover": item_selectors.Fifo().to_config(),
...         "rate_limiter": rate_limiters.MinSize(1).to_config(),
...     }
... )
>>> payloads = np.array([[0, 7], [0, 8]], np.int32)
>>> _ = table.insert(np.array([1.0, 2.0]), payloads, episodes=np.array([0, 0]))
>>> table.sample(1).payloads.tolist()
[[0, 8]]
"""
