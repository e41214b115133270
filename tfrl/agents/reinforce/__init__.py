"""REINFORCE (Williams, 1992), with an optional state-value baseline."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
