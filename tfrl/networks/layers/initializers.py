"""The initialisers of Acme's networks, and copies of initialisers for several layers.

Every function makes new objects, so that no two layers draw the same numbers.
"""

from __future__ import annotations

import math
from typing import Any

import keras

from tfrl.compilation import internals
from tfrl.networks.construction import seeding

# The standard deviation of a standard normal number truncated at two deviations.
_STDDEV_OF_TRUNCATED = 0.87962566103423978


def truncated() -> keras.initializers.Initializer:
    """Returns the initialiser of kernels that Sonnet's layers use.

    It draws normal numbers of standard deviation `1 / sqrt(fan_in)`, truncated at two
    standard deviations. `keras.initializers.VarianceScaling` compensates for the
    variance lost by the truncation; the scale here undoes this compensation.
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


def draw_by_fan_in(network: keras.layers.Layer, seed: int | None = None) -> None:
    """Draws new kernels and biases of a network, as PyTorch's layers do.

    Both are uniform within `1 / sqrt(fan_in)` of the layer. Keras' layers begin with
    biases of 0, so the kinks of all ReLU units of the first layer are at the origin.

    Args:
      network: A network with variables.
      seed: The seed; None draws one.
    """
    seeds = seeding.SeedStream(seed)
    for layer in internals.flatten_layers(network):
        weights = [getattr(layer, name, None) for name in ("kernel", "bias")]
        if weights[0] is None:
            continue
        bound = 1 / math.sqrt(math.prod(weights[0].shape[:-1]))
        for variable in weights:
            if variable is not None:
                draw = keras.initializers.RandomUniform(-bound, bound, seed=seeds())
                variable.assign(draw(variable.shape))


def copies(initializer: Any, num: int) -> list[Any]:
    """Returns copies of an initialiser for `num` layers.

    The copies of a seeded initialiser have different seeds, derived from its seed. The
    copies of other initialisers have no seed, so that `seeding.seed_layer` can seed
    them.
    """
    if isinstance(initializer, str | dict):
        initializer = keras.initializers.get(initializer)
    seeds = seeding.SeedStream(0)
    is_seeded = seeding.is_seeded(initializer)
    return [
        seeding.clone_initializer(initializer, seeds() if is_seeded else None)
        for _ in range(num)
    ]
