"""Proximal Policy Optimization (Schulman et al., 2017)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
