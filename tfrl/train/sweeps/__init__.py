"""Sweeps: many copies of a loop, its members, in one program.

>>> import tempfile
>>> from tfrl.train.sweeps import sweep_checkpoint
>>> with tempfile.TemporaryDirectory() as folder:
...     print(sweep_checkpoint.SweepCheckpoint(folder, {"seeds": [0, 1]}).restore())
None
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
