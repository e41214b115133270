"""What the losses of numbers that are predicted by the logits of bins share."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

import tensorflow as tf

from tfrl.losses.shapes import check_same_shape

if TYPE_CHECKING:
    from tfrl.typing import types


class BinLoss(abc.ABC):
    """The cross entropy to a target's distribution over bins.

    Attributes:
      num_bins: The number `K` of bins.
    """

    num_bins: int

    @abc.abstractmethod
    def probabilities(self, target: types.TensorLike) -> tf.Tensor:
        """Returns a target's distribution, `[..., K]`, without a gradient."""

    def __call__(self, target: types.TensorLike, logits: types.TensorLike) -> tf.Tensor:
        """Returns `-sum_k p_k(target) log softmax(logits)_k`.

        Args:
          target: The targets, `[...]`, which get no gradient.
          logits: The predictions, `[..., K]`.

        Returns:
          The losses, `[...]`. Their least value is the entropy of `p`, not 0.

        Raises:
          ValueError: The shapes do not fit.
        """
        target, logits = tf.convert_to_tensor(target), tf.convert_to_tensor(logits)
        check_same_shape(target=target, one_logit=logits.shape[:-1])
        self._check_bins(logits)
        return tf.nn.softmax_cross_entropy_with_logits(
            labels=self.probabilities(target), logits=logits
        )

    def _check_bins(self, logits: tf.Tensor) -> None:
        """Raises a ValueError unless there is a logit for each bin."""
        check_same_shape(logits=logits.shape[-1:], bins=tf.TensorShape([self.num_bins]))
