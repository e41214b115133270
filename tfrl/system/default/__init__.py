"""The default implementation of `tfrl.system`, at TF-Agents' module path.

>>> from tfrl.system.default import multiprocessing_core
>>> multiprocessing_core.get_context("spawn").get_start_method()
'spawn'
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
