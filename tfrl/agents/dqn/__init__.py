"""Deep Q-learning (Mnih et al., 2015) and Double DQN (van Hasselt et al., 2016)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
