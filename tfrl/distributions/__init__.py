"""Distributions that reinforcement learning needs and TFP lacks.

>>> import numpy as np
>>> from tfrl.distributions import MaskedCategorical, ShiftedCategorical
>>> masked = MaskedCategorical(logits=[0.0, 5.0, 0.0], mask=[True, False, True])
>>> masked.probs_parameter().numpy().round(3).tolist()
[0.5, 0.0, 0.5]
>>> int(ShiftedCategorical(logits=[0.0, 9.0], shift=3).mode())
4
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
