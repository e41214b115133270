"""Scalars, histograms and gradient norms for TensorBoard.

Every function writes to the default `tf.summary` writer and does nothing without one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from tfrl.utils import variables as variables_lib


def as_step(step: Any) -> tf.Tensor | None:
    """Returns a step as int64, the one type that `tf.summary` takes; None stays None.

    Train step counters are of whatever integer type the user chose.
    """
    return None if step is None else tf.cast(step, tf.int64)


@contextlib.contextmanager
def soft_device_placement() -> Iterator[None]:
    """Lets operations run where they can, as summaries must when the rest is on a TPU.

    On leaving the setting is what it was before.
    """
    before = tf.config.get_soft_device_placement()
    tf.config.set_soft_device_placement(True)
    try:
        yield
    finally:
        tf.config.set_soft_device_placement(before)


def summarize_scalar_dict(
    name_data: Mapping[str, Any] | None, step: Any, name_scope: str = "Losses/"
) -> None:
    """Writes each scalar that is not None as `name_scope + name`."""
    step = as_step(step)
    for name, data in (name_data or {}).items():
        if data is not None:
            tf.summary.scalar(name_scope + name, data, step=step)


def generate_tensor_summaries(tag: str, tensor: tf.Tensor, step: Any) -> None:
    """Writes a tensor's histogram, mean, standard deviation, minimum and maximum."""
    step = as_step(step)
    mean, variance = tf.nn.moments(tensor, axes=list(range(tensor.shape.rank)))
    tf.summary.histogram(f"{tag}/histogram", tensor, step=step)
    tf.summary.scalar(f"{tag}/mean", mean, step=step)
    tf.summary.scalar(f"{tag}/stddev", tf.sqrt(variance), step=step)
    tf.summary.scalar(f"{tag}/max", tf.reduce_max(tensor), step=step)
    tf.summary.scalar(f"{tag}/min", tf.reduce_min(tensor), step=step)


def summarize_tensor_dict(tensor_dict: Mapping[str, tf.Tensor], step: Any) -> None:
    """Writes `generate_tensor_summaries` of each entry."""
    for tag, tensor in tensor_dict.items():
        generate_tensor_summaries(tag, tensor, step)


def add_variables_summaries(
    grads_and_vars: Iterable[tuple[Any, Any]], step: Any
) -> None:
    """Writes a histogram and the norm of each variable."""
    step = as_step(step)
    for _, variable in grads_and_vars:
        value = variables_lib.as_tf_variable(variable)
        name = getattr(variable, "path", variable.name).replace(":", "_")
        tf.summary.histogram(f"summarize_vars/{name}_value", value, step=step)
        tf.summary.scalar(
            f"summarize_vars/{name}_value_norm", tf.linalg.global_norm([value]), step
        )


def add_gradients_summaries(
    grads_and_vars: Iterable[tuple[Any, Any]], step: Any
) -> None:
    """Writes a histogram and the norm of each gradient that is not None."""
    step = as_step(step)
    for gradient, variable in grads_and_vars:
        if gradient is None:
            continue
        name = getattr(variable, "path", variable.name).replace(":", "_")
        tf.summary.histogram(f"summarize_grads/{name}_gradient", gradient, step=step)
        tf.summary.scalar(
            f"summarize_grads/{name}_gradient_norm",
            tf.linalg.global_norm([gradient]),
            step=step,
        )
