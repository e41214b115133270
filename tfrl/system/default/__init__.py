"""The default of what `tfrl.system` does, under TF-Agents' module path."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
