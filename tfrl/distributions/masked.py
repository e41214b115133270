"""`MaskedCategorical`, a Categorical in which some values are never drawn."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp


class MaskedCategorical(tfp.distributions.Categorical):
    """A Categorical whose masked values have a very low logit and are never drawn.

    The logit stays finite, since minus infinity makes gradients NaN.
    """

    def __init__(
        self,
        logits: Any,
        mask: Any,
        probs: Any = None,
        dtype: Any = tf.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        neg_inf: float | None = -1e10,
        name: str = "MaskedCategorical",
    ):
        """Creates the distribution from logits and the mask over them.

        Args:
          logits: The logits, `[..., K]`.
          mask: The mask, `[..., K]` or broadcastable to it; False or 0 marks values
            that are never drawn.
          probs: Must be None; the base class has this argument.
          dtype: The dtype of the samples.
          validate_args: As in TFP.
          allow_nan_stats: As in TFP.
          neg_inf: The logit of masked values; None takes the lowest number of the
            dtype.
          name: The distribution's name.

        Raises:
          ValueError: If `probs` is given.
        """
        if probs is not None:
            raise ValueError(
                f"probs: got {probs}, expected None: Must provide masked predictions "
                "as logits; pass tf.math.log(probs)."
            )
        parameters = dict(locals())
        logits = tf.convert_to_tensor(logits)
        self._mask = tf.cast(mask, tf.bool)
        lowest = logits.dtype.min if neg_inf is None else neg_inf
        super().__init__(
            logits=tf.where(self._mask, logits, tf.cast(lowest, logits.dtype)),
            dtype=dtype,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            name=name,
        )
        self._parameters = parameters

    @property
    def mask(self) -> tf.Tensor:
        """The bool mask, which is True for values that can be drawn."""
        return self._mask

    @classmethod
    def _parameter_properties(cls, dtype: Any, num_classes: Any = None) -> Any:
        properties = super()._parameter_properties(dtype, num_classes=num_classes)
        return {**properties, "mask": tfp.util.ParameterProperties(event_ndims=1)}

    def _entropy(self) -> tf.Tensor:
        log_probs = tf.math.log_softmax(self.logits)
        terms = tf.where(self._mask, tf.exp(log_probs) * log_probs, 0.0)
        return -tf.reduce_sum(terms, axis=-1)
