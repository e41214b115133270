"""Dropout that can stay on outside of training, and whose rate can change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf


class PermanentVariableRateDropout(keras.layers.Layer):
    """Drops units at `rate`, a number or a function called at each step.

    With `permanent=True` it drops units at inference too, which turns a network into
    an approximate Bayesian network (Gal and Ghahramani, 2016).
    """

    def __init__(
        self,
        rate: float | Callable[[], Any],
        permanent: bool = False,
        noise_shape: tuple[int | None, ...] | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ):
        """Creates the layer.

        Args:
          rate: The share of units to drop, or a function that returns the share.
          permanent: Whether to drop units at inference too.
          noise_shape: The shape of the mask, which is broadcast to the inputs. A
            dimension of None has the inputs' size. By default the mask has the shape of
            the inputs.
          seed: The seed of the masks; None draws a seed.
          **kwargs: Passed to `keras.layers.Layer`.

        Raises:
          ValueError: If a constant `rate` is outside `[0, 1)`.
        """
        super().__init__(**kwargs)
        if not callable(rate) and not 0 <= rate < 1:
            raise ValueError(
                f"rate: got {rate}, expected a number in [0, 1) or a function that "
                "returns one; it is the share of units dropped."
            )
        self.rate = rate
        self.permanent = permanent
        self.noise_shape = noise_shape
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns `inputs` with units dropped, if training or `permanent`."""
        if not (training or self.permanent):
            return inputs
        rate = self.rate() if callable(self.rate) else self.rate
        noise_shape = None
        if self.noise_shape is not None:
            actual = tf.shape(inputs)
            noise_shape = [
                actual[axis] if size is None else size
                for axis, size in enumerate(self.noise_shape)
            ]
        seed = tf.cast(self.seed_generator.next(), tf.int64)
        return tf.nn.experimental.stateless_dropout(
            inputs, rate, seed=seed, rng_alg="philox", noise_shape=noise_shape
        )

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns `input_shape`."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "rate": self.rate,
            "permanent": self.permanent,
            "noise_shape": self.noise_shape,
            "seed": self.seed,
        }
