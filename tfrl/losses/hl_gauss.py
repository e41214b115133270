"""Values as distributions over bins, trained by a cross entropy: HL-Gauss.

Imani and White, "Improving regression performance with distributional losses" (2018),
for the values of reinforcement learning: Farebrother et al., "Stop regressing: training
value functions via classification for scalable deep RL" (2024, arXiv:2403.03950),
section 3.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import tensorflow as tf

from tfrl.losses import bins

if TYPE_CHECKING:
    from tfrl.typing import types


@dataclasses.dataclass(frozen=True)
class HlGauss(bins.BinLoss):
    """The loss of critics that predict a value by the logits of bins.

    Give it to an agent as `td_errors_loss_fn`, with a critic that has `num_bins`
    outputs for each value.

    Attributes:
      low: The lower edge of the first bin.
      high: The upper edge of the last bin; targets are clipped to `[low, high]`.
      num_bins: The number `K` of bins, which are equally wide.
      smoothing: The standard deviation of the target's distribution, in widths of a
        bin; the paper takes 0.75.
    """

    low: float
    high: float
    num_bins: int
    smoothing: float = 0.75

    def __post_init__(self) -> None:
        """Checks the numbers."""
        if not (self.low < self.high and self.num_bins >= 2 and self.smoothing > 0):
            raise ValueError(
                "HlGauss: expected low < high, at least 2 bins and a positive "
                f"smoothing, got low={self.low}, high={self.high}, num_bins="
                f"{self.num_bins} and smoothing={self.smoothing}; the range should "
                "span all discounted returns."
            )

    def probabilities(self, target: types.TensorLike) -> tf.Tensor:
        """Returns the mass of a normal distribution around a target in each bin.

            p_k = (F(e_(k+1)) - F(e_k)) / (F(e_K) - F(e_0)),

        with the edges `e` and the distribution function `F` of N(target, stddev^2).
        Farebrother et al. 2024, equations 3.6 and 3.7.

        Args:
          target: The targets, `[...]`.

        Returns:
          The probabilities, `[..., K]`, without a gradient.
        """
        target = tf.clip_by_value(tf.convert_to_tensor(target), self.low, self.high)
        edges = tf.cast(
            tf.linspace(self.low, self.high, self.num_bins + 1), target.dtype
        )
        stddev = self.smoothing * (self.high - self.low) / self.num_bins
        below = tf.math.erf((edges - target[..., tf.newaxis]) / (math.sqrt(2) * stddev))
        mass = below[..., 1:] - below[..., :-1]
        return tf.stop_gradient(mass / (below[..., -1:] - below[..., :1]))

    def value(self, logits: types.TensorLike) -> tf.Tensor:
        """Returns the mean of the bins' centers, `[...]`.

        Args:
          logits: The predictions, `[..., K]`.

        Raises:
          ValueError: The number of logits is not `num_bins`.
        """
        logits = tf.convert_to_tensor(logits)
        self._check_bins(logits)
        half = (self.high - self.low) / self.num_bins / 2
        centers = tf.linspace(self.low + half, self.high - half, self.num_bins)
        weighted = tf.nn.softmax(logits) * tf.cast(centers, logits.dtype)
        return tf.reduce_sum(weighted, axis=-1)

    def errors(
        self, target: tf.Tensor, logits: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the losses, and the targets minus the predicted values, `[...]`."""
        return self(target, logits), target - self.value(logits)
