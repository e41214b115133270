"""Parts of the base classes of networks: seeds, copies, recorded arguments, checks.

>>> import keras
>>> from tfrl.networks.construction import seeding
>>> layer = keras.layers.Dense(3)
>>> seeding.seed_layer(layer, seeding.SeedStream(0))
>>> seeding.is_seeded(layer.kernel_initializer)
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
