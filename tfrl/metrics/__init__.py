"""Running statistics over trajectories. Every metric is an observer for drivers.

The metrics of `tf_metrics` run in graphs and hold their state in variables; the metrics
of `py_metrics` run in Python. Both have classes of the same names, so use them through
their modules.

>>> import numpy as np
>>> from tfrl.metrics import py_metrics
>>> from tfrl.trajectories import trajectory
>>> metric = py_metrics.AverageReturnMetric()
>>> for make in (trajectory.first, trajectory.mid, trajectory.last):
...     _ = metric(make((), (), (), np.float32(2), np.float32(1)))
>>> float(metric.result())
6.0
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
