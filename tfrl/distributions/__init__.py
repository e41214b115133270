"""The few distributions that reinforcement learning needs and TFP does not have."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
