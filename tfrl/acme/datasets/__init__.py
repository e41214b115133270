"""Datasets of the items that adders write to a replay server.

>>> import numpy as np
>>> from tfrl import replay_service as reverb
>>> from tfrl.acme import datasets
>>> from tfrl.acme.adders import reverb as adders
>>> from tfrl.specs import ArraySpec
>>> table = reverb.Table(
...     adders.DEFAULT_PRIORITY_TABLE,
...     sampler=reverb.selectors.Uniform(),
...     remover=reverb.selectors.Fifo(),
...     max_size=9,
...     rate_limiter=reverb.rate_limiters.MinSize(1),
...     signature=[ArraySpec((1,), np.float32)],
... )
>>> server = reverb.Server([table])
>>> server.localhost_client().insert([np.float32(0.5)], {table.name: 1.0})
>>> dataset = datasets.make_reverb_dataset(f"localhost:{server.port}", batch_size=1)
>>> next(iter(dataset)).data[0].numpy().tolist()
[[0.5]]
>>> server.stop()
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
