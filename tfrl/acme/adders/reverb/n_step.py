"""The n-step return of an actor's rewards and discounts, in NumPy.

`trajectories.transitions` has it for frames of a buffer, and `losses.n_step_returns`
for sequences with values. Here it is in NumPy: an actor computes it after each step, on
a few numbers of its environment's dtypes, and calls of TensorFlow would take longer
than the sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tree


def n_step_return(
    rewards: Sequence[Any], discounts: Sequence[Any], gamma: Any
) -> tuple[Any, Any]:
    """Returns the discounted return and the discount of consecutive steps.

    With the rewards `r`, the discounts `d` and `g = gamma` (Sutton and Barto 2018,
    section 7.1), they are, over `k` steps,

        r_0 + g d_0 r_1 + ... + g^(k-1) d_0 ... d_(k-2) r_(k-1)
        g^(k-1) d_0 ... d_(k-1)

    The discount has one factor `g` less than steps, because a loss multiplies the value
    of the observation reached by `g`. `trajectory.to_n_step_transition`
    has the same results.

    Args:
      rewards: The `k` rewards. Each is a number, an array, or a nest of them.
      discounts: The `k` discounts of the environment. If one of rewards, discounts and
        `gamma` is a nest, the others are of the same structure, or a single leaf that
        stands for all. The shapes of a reward and its discount are broadcast.
      gamma: The agent's discount, a number or a nest of numbers.

    Returns:
      The return and the discount, in the common structure. A discount keeps its dtype,
      and so does a reward of floats. Other rewards are promoted with the discount.
    """
    if not any(map(tree.is_nested, (rewards[0], discounts[0], gamma))):
        return _of_leaf(rewards, discounts, gamma)
    parts = [*rewards, *discounts, gamma]
    structure, parts = broadcast_structures(*parts)
    k = len(rewards)
    results = [
        _of_leaf(leaf[:k], leaf[k:-1], leaf[-1])
        for leaf in zip(*map(tree.flatten, parts), strict=True)
    ]
    returns, products = zip(*results, strict=True)
    return tree.unflatten_as(structure, returns), tree.unflatten_as(structure, products)


def broadcast_structures(*nests: Any) -> tuple[Any, list[Any]]:
    """Returns the common structure of nests, and the nests in this structure.

    Args:
      *nests: Nests of the same structure, and leaves, which stand for a nest that has
        this leaf everywhere.

    Raises:
      ValueError: If two nests have different structures.
    """
    structure = next((nest for nest in nests if tree.is_nested(nest)), nests[0])
    for nest in nests:
        if tree.is_nested(nest):
            tree.assert_same_structure(structure, nest)
    return structure, [
        nest
        if tree.is_nested(nest)
        else tree.map_structure(lambda _, leaf=nest: leaf, structure)
        for nest in nests
    ]


def return_dtype(reward_dtype: Any, discount_dtype: Any) -> np.dtype:
    """Returns the dtype of the return: the reward's, if the reward is of floats."""
    reward_dtype = np.dtype(reward_dtype)
    if reward_dtype.kind == "f":
        return reward_dtype
    return np.result_type(reward_dtype, discount_dtype)


def _of_leaf(rewards: Any, discounts: Any, gamma: Any) -> tuple[Any, Any]:
    gamma = np.float32(gamma)
    first, product = np.asarray(rewards[0]), np.asarray(discounts[0])
    dtype = return_dtype(first.dtype, product.dtype)
    total = first.astype(dtype) + np.zeros(product.shape, dtype)
    for reward, discount in zip(rewards[1:], discounts[1:], strict=True):
        product = product * gamma
        total = total + reward * product
        product = product * discount
    return total.astype(dtype), product.astype(np.asarray(discounts[0]).dtype)
