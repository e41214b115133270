"""What runs in the server's process: NumPy alone, and never TensorFlow.

>>> import numpy as np
>>> from tfrl.replay_service import item_selectors, rate_limiters
>>> from tfrl.replay_service.engine.table import EngineTable
>>> table = EngineTable(
...     {
...         "name": "t",
...         "max_size": 10,
...         "sampler": item_selectors.MaxHeap().to_config(),
...         "remover": item_selectors.Fifo().to_config(),
...         "rate_limiter": rate_limiters.MinSize(1).to_config(),
...     }
... )
>>> where = np.array([[0, 7], [0, 8]], np.int32)  # What the table is to keep of items.
>>> _ = table.insert(np.array([1.0, 2.0]), where, episodes=np.array([0, 0]))
>>> table.sample(1).payloads.tolist()
[[0, 8]]
"""
