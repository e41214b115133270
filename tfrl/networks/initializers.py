"""The initialisers of Acme's networks, and copies of initialisers for several layers.

Every function makes new objects, so that no two layers draw the same numbers.
"""

from __future__ import annotations

from typing import Any

import keras

from tfrl.networks import seeding

# The standard deviation of a standard normal number cut off at two deviations.
_STDDEV_OF_TRUNCATED = 0.87962566103423978


def truncated() -> keras.initializers.Initializer:
    """Returns the initialiser of kernels that Sonnet's layers use.

    It draws normal numbers of standard deviation `1 / sqrt(fan_in)` and cuts them off
    at two deviations. `keras.initializers.VarianceScaling` makes up for the variance
    that is cut off; its scale undoes that here.
    """
    return keras.initializers.VarianceScaling(
        scale=_STDDEV_OF_TRUNCATED**2, mode="fan_in", distribution="truncated_normal"
    )


def uniform() -> keras.initializers.Initializer:
    """Returns the initialiser of Acme's MLPs: uniform of variance `1 / (3 fan_out)`."""
    return keras.initializers.VarianceScaling(
        scale=0.333, mode="fan_out", distribution="uniform"
    )


def near_zero(scale: float) -> keras.initializers.Initializer:
    """Returns an initialiser of normal numbers of variance `scale / fan_in`."""
    return keras.initializers.VarianceScaling(
        scale=scale, mode="fan_in", distribution="truncated_normal"
    )


def copies(initializer: Any, num: int) -> list[Any]:
    """Returns copies of an initialiser for `num` layers.

    The copies of a seeded initialiser have seeds of their own, which its seed
    determines. Those of others have none, so that `seeding.seed_layer` seeds them.
    """
    if isinstance(initializer, str | dict):
        initializer = keras.initializers.get(initializer)
    seeds = seeding.SeedStream(0)
    is_seeded = seeding.is_seeded(initializer)
    return [
        seeding.clone_initializer(initializer, seeds() if is_seeded else None)
        for _ in range(num)
    ]
