"""Numbers that may change during training, such as an epsilon.

Epsilons, temperatures, scales of noise and exponents are given in one of four ways: a
number; a scalar tensor or variable; a callable without arguments that returns one of
these; or a Keras schedule (`keras.optimizers.schedules`) of a step counter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf


def follow(name: str, value: Any, step: tf.Variable | None) -> Any:
    """Turns a Keras schedule into a callable without arguments that reads `step`.

    Args:
      name: The argument's name, for the error text.
      value: A number or a schedule; returned unchanged unless it is a Keras schedule.
      step: The variable that a schedule follows.

    Raises:
      ValueError: If `value` is a Keras schedule and `step` is None.
    """
    if not isinstance(value, keras.optimizers.schedules.LearningRateSchedule):
        return value
    if step is None:
        raise ValueError(
            f"step: got None with the schedule {type(value).__name__} as {name}, "
            "expected the variable that it follows; pass for example "
            "step=agent.train_step_counter."
        )
    return lambda: value(step)


def current_value(value: Any) -> Any:
    """Returns the current number of a value that `follow` has returned.

    A callable is called. A `tf.function` calls it only once, while tracing, so the
    callable should read a variable.
    """
    return value() if callable(value) else value


class Least(keras.optimizers.schedules.LearningRateSchedule):
    """The least of several learning rates, such as one that rises and one that falls.

    >>> rise = keras.optimizers.schedules.PolynomialDecay(0.0, 100, 1.0)
    >>> fall = keras.optimizers.schedules.PolynomialDecay(1.0, 400, 0.0)
    >>> [float(Least([rise, fall])(step)) for step in (0, 50, 100, 400)]
    [0.0, 0.5, 0.75, 0.0]
    """

    def __init__(self, rates: Sequence[Any]) -> None:
        """Stores the rates.

        Args:
          rates: Schedules, numbers or variables.

        Raises:
          ValueError: There are none.
        """
        if not rates:
            raise ValueError("rates: got none, expected at least one.")
        self._rates = list(rates)

    def __call__(self, step: Any) -> tf.Tensor:
        """Returns the rate at a step, float32."""
        values = [x(step) if callable(x) else tf.identity(x) for x in self._rates]
        return tf.reduce_min([tf.cast(value, tf.float32) for value in values])

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {"rates": self._rates}
