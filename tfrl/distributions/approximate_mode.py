"""`ApproximateModeDistribution`, a transformed distribution with a mode."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp


class ApproximateModeDistribution(tfp.distributions.TransformedDistribution):
    """A `TransformedDistribution` whose `mode()` is the transformed mode.

    TFP has no mode for transformations such as `tanh`, because the transformed mode is
    not the point of the largest density.
    """

    def __init__(
        self,
        distribution: Any,
        bijector: Any,
        name: str = "ApproximateModeDistribution",
    ):
        """Creates the distribution.

        Args:
          distribution: The distribution to transform.
          bijector: The transformation.
          name: The distribution's name.
        """
        parameters = dict(locals())
        super().__init__(distribution, bijector, name=name)
        self._parameters = parameters

    def _mode(self) -> tf.Tensor:
        return self.bijector.forward(self.distribution.mode())
