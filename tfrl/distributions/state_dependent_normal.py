"""A normal distribution whose noise can be a fixed function of the state over steps."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp


class StateDependentNormal(tfp.distributions.MultivariateNormalDiag):
    """A `MultivariateNormalDiag` of actions with generalized state-dependent noise.

    The noise of an action is linear in features `z` of the state, with a random matrix
    `noise_std * E` of independent normal entries. Given the state, the action is `loc +
    z (noise_std * E)` with standard normal `E`, and `scale_diag` is the root of `z^2
    noise_std^2`; `perturb` gives the action for a given `E`. Raffin, Kober and Stulp,
    "Smooth exploration for robotic reinforcement learning" (2021, arXiv:2005.05719),
    equations 4 to 6.

    The features are not parameters of the distribution: a distribution made from the
    recorded `loc` and `scale_diag` has the same density, but cannot `perturb`.
    """

    def __init__(
        self,
        loc: Any,
        scale_diag: Any,
        features: tf.Tensor | None = None,
        noise_std: tf.Tensor | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StateDependentNormal",
    ):
        """Creates the distribution.

        Args:
          loc: The means, `[..., A]`, or `[..., *shape]` for actions of this shape with
            `A` components.
          scale_diag: The standard deviations, like `loc`.
          features: The features of the states, `[..., F]`.
          noise_std: The standard deviations of the random matrix, `[F, A]`.
          validate_args: As in TFP.
          allow_nan_stats: As in TFP.
          name: The distribution's name.
        """
        parameters = {
            "loc": loc,
            "scale_diag": scale_diag,
            "validate_args": validate_args,
            "allow_nan_stats": allow_nan_stats,
            "name": name,
        }
        super().__init__(
            loc=loc,
            scale_diag=scale_diag,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            name=name,
        )
        self._parameters = parameters
        self._features = features
        self._noise_std = noise_std

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> Any:
        # TFP asks each subclass with a constructor for its parameter properties; here
        # they are the base class's.
        return super()._parameter_properties(dtype, num_classes=num_classes)

    @property
    def noise_shape(self) -> tf.TensorShape:
        """The shape of the random matrix, `[F, A]`."""
        return self._features_and_std()[1].shape

    def perturb(self, noise: tf.Tensor) -> tf.Tensor:
        """Returns `loc` plus the noise that random matrices give in these states.

        Args:
          noise: Standard normal numbers, `[..., F, A]`.

        Raises:
          ValueError: The distribution was made without features.
        """
        features, noise_std = self._features_and_std()
        terms = features[..., tf.newaxis] * (noise_std * noise)
        return self.loc + tf.reshape(tf.reduce_sum(terms, axis=-2), tf.shape(self.loc))

    def _features_and_std(self) -> tuple[tf.Tensor, tf.Tensor]:
        if self._features is None or self._noise_std is None:
            raise ValueError(
                f"{self.name}: was made without features or noise_std, expected both; "
                "take the distribution from the network, not from recorded parameters."
            )
        return self._features, self._noise_std
