"""Environments: the base classes, Gymnasium's environments as ours, and wrappers.

`PyEnvironment` speaks NumPy, `TFEnvironment` speaks tensors, and `TFPyEnvironment`
turns the first into the second. `suite_gym.load` makes one of Gymnasium's
environments, `vector_py_environment.load` a batch of them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
