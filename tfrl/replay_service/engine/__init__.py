"""The server side of the replay service, which uses NumPy but never TensorFlow.

- `tables`: items, their priorities, selectors and rate limiters.
- `storage`: the steps that items refer to, in memory that clients can map.
- `checkpoints`: files that hold the tables and the steps.
- `serving`: the process, its sockets, and the sessions of its clients.

>>> import numpy as np
>>> from tfrl.replay_service.engine.storage import layouts, step_store
>>> store = step_store.StepStore(0, [("float32", (2,))], shared=False)
>>> slots = store.allocate(3)
>>> store.write(slots, [np.arange(6, dtype=np.float32).reshape(3, 2)])
>>> items = layouts.Layouts()
>>> pairs = items.find(store, columns=[(0, 0, False)], lengths=[2])
>>> payloads = items.add(pairs, np.array([slots[:2], slots[1:]]))
>>> pairs.gather(pairs.slots(payloads[1:, 1]))[0].tolist()
[[[2.0, 3.0], [4.0, 5.0]]]
"""
