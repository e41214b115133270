"""Running statistics over trajectories; every metric is an observer for drivers.

`tf_metrics` live in graphs and count in variables, `py_metrics` in Python. Both have
classes of the same names, so they are reached through their modules.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
