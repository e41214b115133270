"""Sweeps: many copies of a loop, its members, in one program.

>>> import tempfile
>>> import numpy as np
>>> from tfrl.train.sweeps import sweep_result
>>> curves = sweep_result.SweepCurves(
...     seeds=(0, 1),
...     hyperparameters={"learning_rate": (1e-3, 1e-4)},
...     iterations=np.array([100]),
...     environment_steps=np.array([[100], [100]]),
...     returns=np.array([[9.0], [12.0]], np.float32),
...     losses=np.array([[0.5], [0.25]], np.float32),
... )
>>> with tempfile.NamedTemporaryFile(suffix=".csv") as file:
...     curves.write_csv(file.name)
...     len(file.read().splitlines())  # a header, and a row for each member
3
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
