"""Ornstein-Uhlenbeck noise: temporally correlated exploration of continuous actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds


class OUProcess(tf.Module):
    """A zero-mean Ornstein-Uhlenbeck process in discrete time.

    `x <- (1 - damping) x + N(0, stddev^2)`, as in DDPG (Lillicrap et al. 2016,
    arXiv:1509.02971, section 7). Its standard deviation tends to
    `stddev / sqrt(1 - (1 - damping)^2)`. The value and the random stream are variables,
    so that a checkpoint holds them.
    """

    def __init__(
        self,
        initial_value: Any | Callable[[], Any],
        damping: float | tf.Tensor = 0.15,
        stddev: float | tf.Tensor = 0.2,
        seed: int | None = None,
        scope: str = "ornstein_uhlenbeck_noise",
    ) -> None:
        """Creates the process.

        Args:
          initial_value: A float tensor or array of any shape, or a callable that
            returns one.
          damping: In [0, 1]; 0 is a random walk, 1 uncorrelated Gaussian noise.
          stddev: Standard deviation of each step, not negative.
          seed: Starts the random stream; None follows `tf.random.set_seed`.
          scope: The module's name.

        Raises:
          ValueError: If `damping` is a number outside [0, 1], or `stddev` is negative.
        """
        check_ou_parameters(damping, stddev)
        super().__init__(name=scope)
        self._damping = damping
        self._stddev = stddev
        # Created outside of any graph, because the first use may be in a `tf.function`.
        with tf.init_scope():
            value = initial_value() if callable(initial_value) else initial_value
            self._x = tf.Variable(value, trainable=False, name="x")
            self._generator = seeds.make_generator(seed)

    @property
    def value(self) -> tf.Variable:
        """The current value."""
        return self._x

    def __call__(self, seed: tf.Tensor | None = None) -> tf.Tensor:
        """Takes a step and returns the new value.

        Args:
          seed: The seed of the step, an integer tensor `[2]`; None takes one from the
            process's own stream.
        """
        seed = seeds.next_seed(self._generator) if seed is None else seed
        dtype = self._x.dtype
        step = seeds.normal(seed, self._x.shape, dtype)
        step *= tf.cast(self._stddev, dtype)
        keep = 1 - tf.cast(self._damping, dtype)
        return self._x.assign(keep * self._x + step, read_value=True)

    def reset(self, where: tf.Tensor) -> None:
        """Sets the value to zero where `where` is true.

        Args:
          where: A bool tensor whose shape is a prefix of the value's shape; each entry
            applies to all numbers below it.
        """
        inner = self._x.shape.rank - where.shape.rank
        where = tf.reshape(where, [*where.shape, *[1] * inner])
        self._x.assign(tf.where(where, tf.zeros([], self._x.dtype), self._x))


def ornstein_uhlenbeck_process(
    initial_value: Any | Callable[[], Any],
    damping: float | tf.Tensor = 0.15,
    stddev: float | tf.Tensor = 0.2,
    seed: int | None = None,
    scope: str = "ornstein_uhlenbeck_noise",
) -> OUProcess:
    """Returns an `OUProcess` with these arguments; calling it gives noise."""
    return OUProcess(initial_value, damping, stddev, seed, scope)


def check_ou_parameters(damping: Any, stddev: Any, prefix: str = "") -> None:
    """Raises a ValueError unless the numbers define an Ornstein-Uhlenbeck process."""
    number_checks.check_number(
        f"{prefix}damping",
        damping,
        0,
        1,
        remedy="0 is an undamped random walk, 1 uncorrelated noise",
    )
    number_checks.check_number(f"{prefix}stddev", stddev, 0, remedy="0 adds no noise")
