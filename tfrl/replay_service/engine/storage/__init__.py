"""Stores steps in memory and counts the references of items to them.

>>> import numpy as np
>>> from tfrl.replay_service.engine.storage.step_store import StepStore
>>> store = StepStore(0, [("int32", ())], shared=False)
>>> slots = store.allocate(2)
>>> store.write(slots, [np.array([5, 6], np.int32)])
>>> store.read(0, slots).tolist()
[5, 6]
>>> store.release(slots)
>>> store.rows_in_use
0
"""
