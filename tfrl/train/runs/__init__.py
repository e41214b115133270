"""Runs: a training loop with evaluation, logs, checkpoints and outputs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
