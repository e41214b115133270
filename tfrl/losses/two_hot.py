"""Numbers as distributions over unevenly spaced bins, trained by a cross entropy.

Hafner et al., "Mastering diverse domains through world models" (2023,
arXiv:2301.04104), equations 9 and 10.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from tfrl.losses import bins

if TYPE_CHECKING:
    from tfrl.typing import types


@dataclasses.dataclass(frozen=True)
class TwoHot(bins.BinLoss):
    """The loss of networks that predict a number by the logits of bins.

    The bins are numbers `b_k = symexp(x_k)` for evenly spaced `x_k`, with `symexp(x) =
    sign(x) (exp(|x|) - 1)`, so that they are dense near 0 and reach far.

    Attributes:
      low: The first `x`; the first bin is `symexp(low)`.
      high: The last `x`.
      num_bins: The number `K` of bins.
    """

    low: float
    high: float
    num_bins: int

    def __post_init__(self) -> None:
        """Checks the numbers."""
        if not (self.low < self.high and self.num_bins >= 2):
            raise ValueError(
                "TwoHot: expected low < high and at least 2 bins, got "
                f"low={self.low}, high={self.high} and num_bins={self.num_bins}; -10, "
                "10 and 65 are usual."
            )

    @property
    def bins(self) -> np.ndarray:
        """The bins, float32 `[K]`, in ascending order."""
        evenly = np.linspace(self.low, self.high, self.num_bins)
        return (np.sign(evenly) * np.expm1(np.abs(evenly))).astype(np.float32)

    def probabilities(self, target: types.TensorLike) -> tf.Tensor:
        """Returns the weights of the two bins next to a target, whose mean it is.

        Targets beyond the bins are clipped to the first or the last.

        Args:
          target: The targets, `[...]`.

        Returns:
          The probabilities, `[..., K]`, without a gradient.
        """
        points = tf.constant(self.bins)
        target = tf.convert_to_tensor(target, tf.float32)[..., tf.newaxis]
        # The share of the way from each bin to the next one that lies below the target.
        passed = (target - points[:-1]) / (points[1:] - points[:-1])
        passed = tf.clip_by_value(passed, 0.0, 1.0)
        passed = tf.concat(
            [tf.ones_like(target), passed, tf.zeros_like(target)], axis=-1
        )
        return tf.stop_gradient(passed[..., :-1] - passed[..., 1:])

    def value(self, logits: types.TensorLike) -> tf.Tensor:
        """Returns the mean of the bins, `[...]`.

        Equal probabilities of opposite bins, which may be large, give exactly 0, and
        nearly equal ones a number near 0, also where XLA fuses products.

        Args:
          logits: The predictions, `[..., K]`.

        Raises:
          ValueError: The number of logits is not `num_bins`.
        """
        logits = tf.convert_to_tensor(logits)
        self._check_bins(logits)
        half = self.num_bins // 2
        sizes = [half, self.num_bins - 2 * half, half]
        first, middle, last = tf.split(tf.nn.softmax(logits), sizes, axis=-1)
        small, _, large = tf.split(logits, sizes, axis=-1)
        points = self.bins.astype(logits.dtype.as_numpy_dtype)
        low, centre, high = np.split(points, [half, len(points) - half])
        # In pairs, from the outside: p_i - p_j = p_j expm1(logit_i - logit_j). The
        # difference of rounded probabilities, times bins near 5e8, is wrong by 0.1.
        last, apart = tf.reverse(last, [-1]), small - tf.reverse(large, [-1])
        near = last * tf.math.expm1(tf.minimum(apart, 1.0))
        differences = tf.where(apart < 1.0, near, first - last)
        pairs = differences * low + last * (low + high[::-1])
        return tf.reduce_sum(middle * centre, -1) + tf.reduce_sum(pairs, -1)
