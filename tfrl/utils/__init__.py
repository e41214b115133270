"""What has no better home: helpers for variables, nests, optimizers and seeds."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
