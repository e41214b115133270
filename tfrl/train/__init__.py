"""Training: the fused loops, and the runs that evaluate, save, resume and plot them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
