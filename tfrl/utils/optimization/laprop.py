"""LaProp: Adam whose momentum is of normalized gradients."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfrl.compilation import internals


@keras.saving.register_keras_serializable("tfrl")
class LaProp(keras.optimizers.Optimizer):
    """Divides gradients by their running size before the momentum, not after.

    Liu et al., "LaProp: separating momentum and adaptivity in Adam" (2020,
    arXiv:2002.04839), algorithm 1, with corrections of both means.
    """

    def __init__(
        self,
        learning_rate: Any = 4e-5,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-20,
        name: str = "laprop",
        **kwargs: Any,
    ):
        """Creates the optimizer.

        Args:
          learning_rate: The learning rate, or a schedule.
          beta_1: The decay of the momentum.
          beta_2: The decay of the mean squares.
          epsilon: What is added to their roots.
          name: The name.
          **kwargs: Further arguments of `keras.optimizers.Optimizer`.
        """
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def build(self, variables: Any) -> None:
        """Makes a mean and a mean square for each variable."""
        if self.built:
            return
        super().build(variables)
        self._means, self._squares = self.add_optimizer_variables(
            variables, ["mean", "square"]
        )

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable."""
        step = tf.cast(self.iterations + 1, variable.dtype)
        index = internals.position(self, variable)
        mean, square = self._means[index], self._squares[index]
        rate = tf.cast(learning_rate, variable.dtype)
        gradient = tf.cast(gradient, variable.dtype)
        new_square = square + (1 - self.beta_2) * (tf.square(gradient) - square)
        self.assign(square, new_square)
        size = tf.sqrt(new_square / (1 - self.beta_2**step)) + self.epsilon
        new_mean = mean + (1 - self.beta_1) * (gradient / size - mean)
        self.assign(mean, new_mean)
        self.assign_sub(variable, rate * new_mean / (1 - self.beta_1**step))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        own = ("beta_1", "beta_2", "epsilon")
        return {**super().get_config(), **{name: getattr(self, name) for name in own}}
