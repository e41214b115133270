"""Networks in plain JAX, lists of layers: convolutions for images, and dense layers.

A convolution may be a product of the images' patches and the kernel. The gradient of
`jax.lax.conv_general_dilated` takes 13 times as long on a CPU in a loop, which all
programs here are, and twice as long outside of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

Network = list[tuple[Any, ...]]


def make(
    key: Any,
    shape: Sequence[int],
    units: Sequence[int],
    outputs: int,
    *,
    filters: int = 0,
    normalized: bool = False,
) -> Network:
    """Makes a network.

    Args:
      key: The key of the initial weights.
      shape: The shape of an observation.
      units: The units of each dense layer before the last.
      outputs: The units of the last layer.
      filters: The filters of a convolution of 3 x 3 before them; 0 for none.
      normalized: Whether these dense layers have layer normalization.

    Returns:
      Kernel and bias of each layer, and scale and offset of a normalization.
    """
    keys = jax.random.split(key, 2 + len(units))
    layers: Network = []
    if filters:
        height, width, channels = shape
        layers.append(_layer(keys[0], (3, 3, channels, filters)))
        shape = (height - 2, width - 2, filters)
    sizes = [math.prod(shape), *units]
    for k, rows, columns in zip(keys[1:-1], sizes[:-1], sizes[1:], strict=True):
        kernel, bias = _layer(k, (rows, columns))
        norm = (jnp.ones_like(bias), bias) if normalized else ()
        layers.append((kernel, bias, *norm))
    return [*layers, _layer(keys[-1], (sizes[-1], outputs))]


def apply(
    network: Network,
    x: Any,
    activation: Callable[[Any], Any],
    *,
    by_products: bool = True,
) -> Any:
    """Returns the outputs `[B, outputs]` for observations `[B, ...]`.

    Args:
      network: The layers.
      x: The observations.
      activation: The activation of all layers but the last.
      by_products: Whether convolutions are products of patches and kernels.
    """
    convolve = _multiply_patches if by_products else _convolve
    *hidden, (out, out_bias) = network
    for kernel, bias, *norm in hidden:
        if kernel.ndim == 4:
            x = activation(convolve(x, kernel) + bias).reshape(len(x), -1)
            continue
        x = x.reshape(len(x), -1) @ kernel + bias
        if norm:
            scale, offset = norm
            x = scale * jax.nn.standardize(x, epsilon=1e-5) + offset
        x = activation(x)
    return x @ out + out_bias


def _convolve(x: Any, kernel: Any) -> Any:
    return jax.lax.conv_general_dilated(
        x, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def _multiply_patches(x: Any, kernel: Any) -> Any:
    height, width = kernel.shape[:2]
    rows, columns = x.shape[1] - height + 1, x.shape[2] - width + 1
    patches = [
        x[:, i : i + rows, j : j + columns] for i in range(height) for j in range(width)
    ]
    matrix = kernel.reshape(-1, kernel.shape[-1])
    return jnp.concatenate(patches, axis=-1) @ matrix


def _layer(key: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    rows = math.prod(shape[:-1])
    return jax.random.normal(key, shape) / rows**0.5, jnp.zeros(shape[-1])
