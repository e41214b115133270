"""Stores the steps of writers, and sends their items to a server exactly once.

>>> from tfrl import replay_service as reverb
>>> server = reverb.Server([reverb.Table.queue("steps", max_size=10)])
>>> with server.localhost_client().trajectory_writer(num_keep_alive_refs=3) as writer:
...     for step in range(3):
...         writer.append({"x": step})
...     print(writer.history["x"][-2:].numpy())
[1 2]
>>> server.stop()
"""
