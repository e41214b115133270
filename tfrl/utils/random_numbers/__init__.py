"""Random numbers from stateless seeds, and permutations.

>>> from tfrl.utils.random_numbers import permutations, seeds
>>> seed = seeds.as_seed(0)
>>> float(seeds.uniform(seed, [])) == float(seeds.uniform(seed, []))
True
>>> sorted(permutations.permutations(seed, 1, 4).numpy().ravel().tolist())
[0, 1, 2, 3]
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
