"""Observers, which add measurements to the log of an `EnvironmentLoop`.

>>> import dm_env
>>> import numpy as np
>>> from tfrl.acme.utils import observers
>>> observer = observers.ActionNormObserver()
>>> observer.observe_first(None, dm_env.restart(0.0))
>>> observer.observe(None, dm_env.transition(0.0, 0.0), np.array([3.0, 4.0]))
>>> float(observer.get_metrics()["action_norm_max"])
5.0
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
