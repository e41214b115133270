"""Training beyond one process and one machine.

>>> from tfrl.distribute import shares
>>> shares.shares("size", [10, 30], [0.0, 0.0])
[0.25, 0.75]
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
