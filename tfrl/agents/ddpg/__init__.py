"""Deep deterministic policy gradient (Lillicrap et al., 2016): the networks."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
