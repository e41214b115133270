"""What serves Gymnasium's environments: vectors of them, state, masks and rendering.

`gymnasium_wrapper` beside this package turns one into a `PyEnvironment`.

>>> from tfrl.environments.gymnasium import vector_py_environment
>>> vector_py_environment.load("CartPole-v1", 2).reset().observation.shape
(2, 4)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
