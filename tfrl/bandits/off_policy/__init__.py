"""Logged data of bandits: datasets to learn from, and the value of other policies.

>>> import numpy as np
>>> from tfrl.bandits import off_policy
>>> log = off_policy.LoggedData(
...     observation=np.zeros([4, 2]),
...     action=[0, 0, 1, 1],
...     reward=[0.0, 0.0, 1.0, 1.0],
...     propensity=[0.5, 0.5, 0.5, 0.5],
... )
>>> always_1 = np.tile([0.0, 1.0], [4, 1])
>>> off_policy.evaluate(always_1, log).ips.value
1.0
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
