"""The matrix products of an update of DreamerV3, and nothing else, in NumPy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.workers import serving
from tfrl.agents.dreamer import rssm

_OBSERVATION, _ACTION, _BINS, _IMAGINED = 3, 1, 255, 15


class Product(NamedTuple):
    """A product of `[rows, inputs]` and `[inputs, outputs]`.

    Attributes:
      times: How often it is computed in an update.
      has_gradient: Whether the gradients of both factors are, too.
    """

    rows: int
    inputs: int
    outputs: int
    times: int
    has_gradient: bool

    def operations(self) -> int:
        """Returns the multiplications and additions in an update."""
        products = 3 if self.has_gradient else 1
        return 2 * products * self.times * self.rows * self.inputs * self.outputs


def of_update(sizes: rssm.Sizes, batch: int, length: int) -> list[Product]:
    """Lists the products of an update.

    Args:
      sizes: The sizes of the networks.
      batch: Sequences in a batch.
      length: Frames in a sequence.
    """
    deter, units, hidden = sizes.deter, sizes.units, sizes.hidden
    logits = sizes.stoch * sizes.classes
    block, features = deter // sizes.blocks, deter + logits
    every = batch * length
    deep = [(features, units), (units, units), (units, units)]
    core = [
        *((deter, hidden), (logits, hidden), (_ACTION, hidden)),
        # The inputs that all blocks share are multiplied once, for all blocks.
        (3 * hidden, deter),
        *[(block, block)] * sizes.blocks,
        *[(block, 3 * block)] * sizes.blocks,
    ]
    prior = [(deter, hidden), (hidden, hidden), (hidden, logits)]
    reward, going = ([(features, units), (units, outputs)] for outputs in (_BINS, 1))
    critic, actor = ([*deep, (units, outputs)] for outputs in (_BINS, 2 * _ACTION))
    seen = [(_OBSERVATION, units), (units, units), (units, units)]
    in_turn = [*core, (deter + units, hidden), (hidden, logits)]
    replayed = [*seen, *prior, *reward, *going, *deep, (units, _OBSERVATION), *critic]
    kinds = (
        (in_turn, batch, length, True),
        (replayed, every, 1, True),
        ([*core, *prior, *reward, *going], every, _IMAGINED, False),
        ([*actor, *critic], every, _IMAGINED, True),
        (critic, every, _IMAGINED + 1, False),  # Of the averaged weights.
    )
    return [
        Product(rows, *shape, times, has_gradient)
        for shapes, rows, times, has_gradient in kinds
        for shape in shapes
    ]


def dreamer_products(size: str, batch: int, length: int) -> serving.Task:
    """Makes the products of an update; see `of_update`."""
    rng = np.random.default_rng(0)
    products = of_update(rssm.SIZES[size], batch, length)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, np.float32)

    factors = [
        (p, normal(p.rows, p.inputs), normal(p.inputs, p.outputs)) for p in products
    ]

    def run(count: int) -> dict[str, int]:
        for _ in range(count):
            for product, inputs, weights in factors:
                for _ in range(product.times):
                    outputs = inputs @ weights
                    if product.has_gradient:
                        inputs.T @ outputs
                        outputs @ weights.T
        return {"iterations": count}

    operations = sum(product.operations() for product in products)
    return serving.Task(run, {"GFLOP an iteration": round(operations / 1e9, 1)})
