"""Numbers that may change during training, such as an epsilon.

Epsilons, temperatures, scales of noise and exponents are given in one of four ways: a
number; a scalar tensor or variable; a callable without arguments that returns one of
these; or a Keras schedule (`keras.optimizers.schedules`) of a step counter.
"""

from __future__ import annotations

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
