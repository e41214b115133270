"""How good a policy is: metrics, unbiased evaluation, and statistics over seeds."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
