"""Processes: starting, watching and ending them. Nothing here imports TensorFlow."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
