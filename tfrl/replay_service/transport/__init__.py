"""Messages between clients and servers, over TCP or a Unix socket.

>>> import numpy as np
>>> from tfrl.replay_service.transport import wire
>>> buffers = wire.encode(wire.MUTATE, {"table": "t"}, [np.array([1, 2], np.uint64)])
>>> frame = wire.decode(b"".join(buffers))
>>> frame.kind == wire.MUTATE, frame.meta, frame.arrays
(True, {'table': 't'}, [array([1, 2], dtype=uint64)])
"""
