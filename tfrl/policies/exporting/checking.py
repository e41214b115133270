"""Checks an exported policy against the policy, on random observations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.policies.exporting import named_function

# Takes and returns dicts of arrays `[B, ...]`; see `named_function.NamedFunction`.
Act = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]

NUM_OBSERVATIONS = 1_000
# The largest difference of numbers, as a share of the largest number of the output.
TOLERANCE = 1e-5
# Bounds of observations that are farther out stand for none.
_FAR = 1e6


def check(
    act: Act,
    function: named_function.NamedFunction,
    seed: int = 0,
    batch_size: int = NUM_OBSERVATIONS,
) -> None:
    """Compares an exported policy with the policy on 1,000 random observations.

    Logits, means, states and continuous actions may differ by 1e-5 of the largest
    number of the output. Discrete actions have to be equal where the best two logits
    are farther apart.

    Args:
      act: The exported policy.
      function: The policy.
      seed: The seed of the observations, and of the states.
      batch_size: The number of observations of a call of `act`.

    Raises:
      ValueError: They differ; the message has the output and the numbers.
    """
    inputs = random_inputs(function, NUM_OBSERVATIONS, seed)
    expected = _in_batches(_live(function), inputs, NUM_OBSERVATIONS)
    got = _in_batches(act, inputs, batch_size)
    sure = _is_sure(expected)
    # Numbers first: actions that differ are their consequence.
    for name in sorted(got, key=lambda name: name.startswith("action")):
        _compare(name, got[name], expected[name], sure)


def random_inputs(
    function: named_function.NamedFunction, count: int, seed: int
) -> dict[str, np.ndarray]:
    """Returns random inputs `[count, ...]` within their specs.

    Numbers without bounds are drawn from the standard normal distribution. Half of the
    states are those of an episode's beginning.

    Args:
      function: The policy.
      count: The number of inputs.
      seed: The seed.
    """
    generator = np.random.default_rng(seed)
    inputs = {}
    for name, spec in function.inputs.items():
        drawn = _draw(generator, spec, (count, *spec.shape))
        if name.partition("/")[0] == "state":
            drawn[: count // 2] = 0
        inputs[name] = drawn
    return inputs


def _draw(
    generator: np.random.Generator, spec: Any, shape: tuple[int, ...]
) -> np.ndarray:
    dtype = spec.dtype.as_numpy_dtype
    low = np.asarray(getattr(spec, "minimum", -np.inf), np.float64)
    high = np.asarray(getattr(spec, "maximum", np.inf), np.float64)
    if spec.dtype.is_bool:
        return generator.integers(0, 2, shape).astype(dtype)
    if spec.dtype.is_integer:
        first = np.where(low < -_FAR, 0, low).astype(np.int64)
        last = np.where(high > _FAR, first + 1, high).astype(np.int64)
        return generator.integers(first, last, shape, endpoint=True).astype(dtype)
    normal = np.clip(generator.normal(size=shape), low, high)
    is_bounded = np.broadcast_to((low > -_FAR) & (high < _FAR), shape)
    low, high = (np.where(np.abs(x) < _FAR, x, 0) for x in (low, high))
    uniform = generator.uniform(low, high, shape)
    return np.where(is_bounded, uniform, normal).astype(dtype)


def _live(function: named_function.NamedFunction) -> Act:
    """Returns the policy itself as a function of arrays."""
    traced = function.trace()

    def act(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        outputs = traced(*(tf.constant(x) for x in inputs.values()))
        return {name: x.numpy() for name, x in outputs.items()}

    return act


def _in_batches(
    act: Act, inputs: Mapping[str, np.ndarray], size: int
) -> dict[str, np.ndarray]:
    rows = [
        act({name: x[i : i + size] for name, x in inputs.items()})
        for i in range(0, NUM_OBSERVATIONS, size)
    ]
    return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}


def _is_sure(expected: Mapping[str, np.ndarray]) -> np.ndarray:
    """Returns where the best two logits are not nearly equal, bool `[B]`."""
    sure = np.ones(NUM_OBSERVATIONS, bool)
    for name, numbers in expected.items():
        if name.partition("/")[0] in ("logits", "probabilities"):
            best = np.sort(numbers, -1)[..., -2:].astype(np.float64)
            gaps = best[..., -1] - best[..., 0]
            is_far = (gaps > 2 * TOLERANCE * _size(numbers)) | (best.shape[-1] < 2)
            sure &= is_far.reshape(NUM_OBSERVATIONS, -1).all(1)
    return sure


def _size(numbers: np.ndarray) -> float:
    """Returns the largest absolute number; those of masked actions do not count."""
    if not np.issubdtype(numbers.dtype, np.floating):
        return 0.0
    is_masked = numbers <= np.finfo(numbers.dtype).min
    return float(np.max(np.abs(numbers), initial=0, where=~is_masked))


def _compare(
    name: str, got: np.ndarray, expected: np.ndarray, sure: np.ndarray
) -> None:
    """Raises a ValueError if an output differs."""
    if got.shape != expected.shape:
        raise ValueError(f"{name} has the shape {got.shape}, not {expected.shape}")
    is_action = name.partition("/")[0] == "action"
    if is_action:
        got, expected = got[sure], expected[sure]
    if is_action and not np.issubdtype(expected.dtype, np.floating):
        differ = int(np.any(got != expected, tuple(range(1, got.ndim))).sum())
        if differ:
            raise ValueError(f"{name} differs for {differ} of {len(got)} observations")
        return
    allowed = TOLERANCE * _size(expected)
    same = got == expected
    distance = np.abs(np.subtract(got, expected, dtype=np.float64))
    worst = float(np.max(distance, initial=0, where=~same))
    if not worst <= allowed:
        raise ValueError(f"{name} differs by {worst:.2g}, more than {allowed:.2g}")
