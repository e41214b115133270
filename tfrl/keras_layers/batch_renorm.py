"""Batch normalization that stays close to its running statistics (Ioffe, 2017)."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

from tfrl.compilation import replicas

_counted: contextvars.ContextVar[tf.Tensor | None] = contextvars.ContextVar(
    "tfrl_counted_examples", default=None
)


@contextlib.contextmanager
def counted(mask: tf.Tensor) -> Iterator[None]:
    """Lets the statistics of each `BatchRenorm` see some examples of the batch only.

    Args:
      mask: Whether each example counts, `[B]`. If none does, nothing changes.
    """
    token = _counted.set(mask)
    try:
        yield
    finally:
        _counted.reset(token)


class BatchRenorm(keras.layers.Layer):
    """Normalizes inputs `[B, n]`, or `[N, B, n]` of `N` stacked layers.

    With the mean m and the deviation s of the batch, and the running ones m' and s',
    training computes

        y = scale * ((x - m) / s * r + d) + offset
        r = clip(s / s', 1 / r_max, r_max)
        d = clip((m - m') / s', -d_max, d_max)

    where r and d have no gradient, and are 1 and 0 in the first `warm_up` updates,
    which is batch normalization. Otherwise m' and s' stand for m and s, so that without
    the clipping both are the same function of x. Each of the `N` layers has its own
    statistics. With several replicas, the statistics are those of all their examples.

    Ioffe, "Batch renormalization: towards reducing minibatch dependence in
    batch-normalized models" (2017, arXiv:1702.03275), algorithm 1, which averages s,
    not the variance.
    """

    def __init__(
        self,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        r_max: float = 3.0,
        d_max: float = 5.0,
        warm_up: int = 100_000,
        **kwargs: Any,
    ):
        """Creates the layer; the defaults are those of CrossQ.

        Args:
          momentum: The share of the running statistics that an update keeps.
          epsilon: Is added to variances.
          r_max: The greatest r, and the inverse of the least one.
          d_max: The greatest absolute value of d.
          warm_up: The number of updates without r and d.
          **kwargs: Passed to `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        self.momentum = momentum
        self.epsilon = epsilon
        self.r_max = r_max
        self.d_max = d_max
        self.warm_up = warm_up

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates the weights, and the statistics, which are not trained.

        Raises:
          ValueError: The inputs are neither `[B, n]` nor `[N, B, n]`.
        """
        if len(input_shape) not in (2, 3):
            raise ValueError(
                f"{self.name}: got inputs of shape {tuple(input_shape)}, expected "
                "[B, n], or [N, B, n] of N stacked layers; flatten the others."
            )
        shape = (*input_shape[:-2], 1, input_shape[-1])

        def weight(name: str, initial: str, **kwargs: Any) -> Any:
            return self.add_weight(
                name=name, shape=shape, initializer=initial, autocast=False, **kwargs
            )

        fixed = {"trainable": False, "aggregation": "only_first_replica"}
        self.scale = weight("scale", "ones")
        self.offset = weight("offset", "zeros")
        self.moving_mean = weight("moving_mean", "zeros", **fixed)
        self.moving_variance = weight("moving_variance", "ones", **fixed)
        self.num_updates = self.add_weight(
            name="num_updates", shape=(), initializer="zeros", dtype="int64", **fixed
        )

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns the normalized inputs; in training, updates the statistics."""
        x = tf.cast(inputs, self.variable_dtype)
        mean, variance, scale, offset = map(
            tf.convert_to_tensor,
            (self.moving_mean, self.moving_variance, self.scale, self.offset),
        )
        if training:
            batch_mean, batch_variance = _moments(x, mean, variance)
            deviation = self._deviation(batch_variance)
            r, d = self._corrections(batch_mean, deviation)
            normalized = (x - batch_mean) / deviation * r + d
            self._update(batch_mean, batch_variance)
        else:
            normalized = (x - mean) / self._deviation(variance)
        return tf.cast(scale * normalized + offset, self.compute_dtype)

    def _deviation(self, variance: tf.Tensor) -> tf.Tensor:
        return tf.sqrt(variance + self.epsilon)

    def _corrections(
        self, mean: tf.Tensor, deviation: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns r and d, without gradient."""
        running = self._deviation(tf.convert_to_tensor(self.moving_variance))
        r = tf.clip_by_value(deviation / running, 1 / self.r_max, self.r_max)
        d = (mean - tf.convert_to_tensor(self.moving_mean)) / running
        d = tf.clip_by_value(d, -self.d_max, self.d_max)
        is_warm = tf.convert_to_tensor(self.num_updates) >= self.warm_up
        return (
            tf.stop_gradient(tf.where(is_warm, r, 1.0)),
            tf.stop_gradient(tf.where(is_warm, d, 0.0)),
        )

    def _update(self, mean: tf.Tensor, variance: tf.Tensor) -> None:
        pairs = (self.moving_mean, mean), (self.moving_variance, variance)
        for moving, of_batch in pairs:
            now = tf.convert_to_tensor(moving)
            moving.assign(now + (1 - self.momentum) * (of_batch - now))
        self.num_updates.assign(tf.convert_to_tensor(self.num_updates) + 1)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns `input_shape`."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        names = "momentum", "epsilon", "r_max", "d_max", "warm_up"
        own = {name: getattr(self, name) for name in names}
        return {**super().get_config(), **own}


def _moments(
    x: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the mean and the variance of the examples of all replicas that count.

    Args:
      x: The inputs, `[(N,) B, n]`.
      mean: The mean to return if no example counts, `[(N,) 1, n]`.
      variance: The variance to return if no example counts, like `mean`.
    """
    mask = _counted.get()
    weight = (
        tf.ones_like(x[..., :1])
        if mask is None
        else tf.cast(mask[:, tf.newaxis], x.dtype)
    )
    (share,) = replicas.mean_over_replicas([tf.reduce_mean(weight, -2, keepdims=True)])

    def mean_of(values: tf.Tensor) -> tf.Tensor:
        total = tf.reduce_mean(weight * values, -2, keepdims=True)
        return tf.math.divide_no_nan(replicas.mean(total), share)

    found = mean_of(x)
    spread = mean_of(tf.math.squared_difference(x, found))
    counts = share > 0
    return tf.where(counts, found, mean), tf.where(counts, spread, variance)
