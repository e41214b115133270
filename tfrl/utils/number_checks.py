"""Checks of the numbers and words that configure agents, loops and environments.

This module does not import TensorFlow, because environment workers use it.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Iterator, Mapping
from typing import Any

# The fields of Keras's schedules that hold values of the schedule.
_VALUES = ("initial_learning_rate", "end_learning_rate", "warmup_target", "values")


def check_choice(
    name: str, value: Any, choices: Collection[str], *, remedy: str
) -> None:
    """Raises a ValueError unless a value is one of some words."""
    if value not in choices:
        raise ValueError(
            f"{name}: expected one of {', '.join(map(repr, choices))}, got {value!r}; "
            f"{remedy}."
        )


def check_number(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    remedy: str,
    excludes_low: bool = False,
    excludes_high: bool = False,
    optional: bool = False,
) -> None:
    """Checks that a number is finite and in a range.

    For a Keras schedule, the values in its configuration are checked. Tensors,
    variables and callables are not checked.

    Args:
      name: The name of the argument.
      value: The argument.
      low: The least allowed number.
      high: The greatest allowed number.
      remedy: The remedy, for the message.
      excludes_low: Whether `low` itself is not allowed.
      excludes_high: Whether `high` itself is not allowed.
      optional: Whether None is allowed.

    Raises:
      ValueError: If the number, or a number of a schedule, is not finite or not in
        range.
      TypeError: If `value` is not a number, but a string, for example.
    """
    if optional and value is None:
        return
    expected = _describe(low, high, excludes_low, excludes_high)
    expected += " or None" * optional
    for number, where in _numbers(name, value, expected, remedy):
        is_excluded = (excludes_low and number == low) or (
            excludes_high and number == high
        )
        if is_excluded or not (low <= number <= high and math.isfinite(number)):
            raise ValueError(
                f"{name}: expected {expected}, got {number}{where}; {remedy}."
            )


def check_integer(
    name: str,
    value: Any,
    minimum: int,
    maximum: int | None = None,
    *,
    remedy: str,
    optional: bool = False,
) -> None:
    """Checks that a number is an integer in a range; tensors pass.

    Args:
      name: The name of the argument.
      value: The argument.
      minimum: The least allowed number.
      maximum: The greatest allowed number, if there is one.
      remedy: The remedy, for the message.
      optional: Whether None is allowed.

    Raises:
      TypeError: If `value` is not an integer.
      ValueError: If `value` is not in the range.
    """
    if optional and value is None:
        return
    expected = f"an integer of at least {minimum}"
    if maximum is not None:
        expected = f"an integer in [{minimum}, {maximum}]"
    expected += " or None" * optional
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        if hasattr(value, "dtype") and not isinstance(value, numbers.Real):
            return
        raise _wrong_type(name, value, expected, remedy)
    number = int(value)
    if number < minimum or (maximum is not None and number > maximum):
        raise ValueError(f"{name}: expected {expected}, got {value}; {remedy}.")


def as_integer(value: Any) -> Any:
    """Returns a float that is a whole number as an integer, and other values as is."""
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        number = float(value)
        return int(number) if number.is_integer() else value
    return value


def check_sizes(optional: bool = False, **sizes: Any) -> None:
    """Checks that each argument is a positive integer, or None if `optional`."""
    for name, size in sizes.items():
        remedy = "raise it, or leave it out" if optional else "raise it"
        if name == "batch_size" and size is None:
            remedy = (
                "a PyEnvironment that is not batched has none: write "
                "TFPyEnvironment(environment).batch_size, or 1"
            )
        check_integer(name, size, 1, remedy=remedy, optional=optional)


def _numbers(
    name: str, value: Any, expected: str, remedy: str
) -> Iterator[tuple[float, str]]:
    """Yields the numbers of an argument, each with its place in the argument."""
    if isinstance(value, numbers.Real):
        yield float(value), ""
    elif callable(value):
        for field, number in _values_of_schedule(value):
            yield number, f" as {field} of the schedule {type(value).__name__}"
    elif not hasattr(value, "dtype"):
        raise _wrong_type(name, value, expected, remedy)


def _wrong_type(name: str, value: Any, expected: str, remedy: str) -> TypeError:
    return TypeError(
        f"{name}: expected {expected}, got {value!r} of type {type(value).__name__}; "
        f"{remedy}."
    )


def _values_of_schedule(schedule: Any) -> Iterator[tuple[str, float]]:
    """Yields the names and values that a Keras schedule's configuration holds."""
    try:
        config = schedule.get_config()
    except (AttributeError, NotImplementedError, TypeError):
        return
    for field in _VALUES if isinstance(config, Mapping) else ():
        values = config.get(field)
        for number in values if isinstance(values, list | tuple) else [values]:
            if isinstance(number, numbers.Real):
                yield field, float(number)


def _describe(low: float, high: float, excludes_low: bool, excludes_high: bool) -> str:
    if math.isfinite(low) and math.isfinite(high):
        first, last = "[("[excludes_low], "])"[excludes_high]
        return f"a number in {first}{low:g}, {high:g}{last}"
    if excludes_low:
        return f"a finite number above {low:g}"
    return (
        f"a finite number of at least {low:g}" if low > -math.inf else "a finite number"
    )
