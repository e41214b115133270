"""The n-step return of an actor's rewards and discounts, in NumPy.

`trajectories.transitions` computes n-step returns from frames of a buffer, and
`losses.n_step_returns` from sequences with values. This module uses NumPy, because an
actor computes the return of a few numbers after each step, in the dtypes of its
environment, and calls of TensorFlow would take longer than the sums.
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
    section 7.1), the return and the discount over `k` steps are

        r_0 + g d_0 r_1 + ... + g^(k-1) d_0 ... d_(k-2) r_(k-1)
        g^(k-1) d_0 ... d_(k-1)

    The discount has `k - 1` factors `g`, because a loss multiplies the value of the
    last observation by `g` once more. `trajectory.to_n_step_transition` has the same
    results.

    Args:
      rewards: The `k` rewards. Each is a number, an array, or a nest of them.
      discounts: The `k` discounts of the environment. If one of rewards, discounts and
        `gamma` is a nest, each of the others is a nest of the same structure or a
        single leaf. A single leaf is used for every leaf of the nest. The shapes of a
        reward and its discount are broadcast.
      gamma: The agent's discount, a number or a nest of numbers.

    Returns:
      The return and the discount, in the common structure. A discount keeps its dtype,
      and so does a reward of floats. A return of other rewards has the dtype to which
      NumPy promotes reward and discount.
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
    """Returns the common structure of several nests, and each nest in that structure.

    Args:
      *nests: Nests of the same structure, or single leaves. A single leaf is repeated
        for every leaf of that structure.

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
