"""Several replay servers, the shards, that are used as one table.

>>> from tfrl.distribute.shards import batch_shares
>>> shares = batch_shares.shares("size", sizes=[300, 100], masses=[0.0, 0.0])
>>> shares
[0.75, 0.25]
>>> batch_shares.Apportionment(num_shards=2).split(shares, 8)  # A batch of 8 rows.
[6, 2]
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
