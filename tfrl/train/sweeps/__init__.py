"""Sweeps: many copies of a loop, its members, in one program."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
