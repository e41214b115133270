"""Samples from a server, as batches of NumPy arrays or as a `tf.data.Dataset`.

>>> from tfrl import replay_service as reverb
>>> from tfrl.replay_service.sampling import sampler
>>> server = reverb.Server([reverb.Table.queue("numbers", max_size=10)])
>>> for number in range(4):
...     server.localhost_client().insert([float(number)], {"numbers": 1.0})
>>> stream = sampler.SampleStream(
...     f"localhost:{server.port}", "numbers", max_in_flight=4, timeout_ms=0
... )
>>> stream.next_batch(3)[-1].tolist()
[[0.0], [1.0], [2.0]]
>>> stream.close()
>>> server.stop()
"""
