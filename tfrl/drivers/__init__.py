"""Drivers step a policy through an environment and show each step to observers.

`PyDriver` drives Python environments; the others drive TensorFlow environments, eagerly
or as part of a graph.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
