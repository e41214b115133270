"""Writes scalars, histograms and gradient norms for TensorBoard.

Every function writes to the default `tf.summary` writer and does nothing without one.
A `tf.function` that is traced without a writer writes nothing later either. Summaries
that cost more than a scalar are computed only in steps that `tf.summary.record_if`
records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.utils import variables as variables_lib


def as_step(step: Any) -> tf.Tensor | None:
    """Returns a step as int64, the only dtype that `tf.summary` takes; None stays None.

    A train step counter may have any integer dtype.
    """
    if isinstance(step, int):
        # TensorFlow keeps each Python number that becomes a tensor, but not NumPy's
        # numbers.
        step = np.int64(step)
    return None if step is None else tf.cast(step, tf.int64)


def when_recording(write: Callable[[], None]) -> None:
    """Calls `write` if there is a writer that records this step.

    If a graph decides this at run time, the operations of `write` run only in recorded
    steps.
    """
    recording = tf.summary.should_record_summaries()
    known = tf.get_static_value(recording)
    if known is not None:
        if known:
            write()
        return

    # Scope names become parts of tags; without this, `cond` would be one of them.
    scope = tf.get_current_name_scope()

    def write_and_go_on() -> tf.Tensor:
        # The decision to record has been made, so no summary inside needs a branch of
        # its own.
        with tf.name_scope(f"{scope}/" if scope else ""), tf.summary.record_if(True):
            write()
        return tf.constant(True)

    tf.cond(recording, write_and_go_on, lambda: tf.constant(False))


def summarize_scalar_dict(
    name_data: Mapping[str, Any] | None, step: Any, name_scope: str = "Losses/"
) -> None:
    """Writes each scalar that is not None as `name_scope + name`."""
    step = as_step(step)
    for name, data in (name_data or {}).items():
        if data is not None:
            tf.summary.scalar(name_scope + name, data, step=step)


def generate_tensor_summaries(tag: str, tensor: tf.Tensor, step: Any) -> None:
    """Writes a tensor's histogram, and statistics of its elements.

    The tags are `tag/histogram`, `tag/mean`, `tag/mean_abs`, `tag/max`, `tag/min` and
    `tag/std`.
    """
    summarize_tensor_dict({tag: tensor}, step)


def summarize_tensor_dict(tensor_dict: Mapping[str, tf.Tensor], step: Any) -> None:
    """Writes the summaries of `generate_tensor_summaries` for each entry."""

    def write() -> None:
        for tag, tensor in tensor_dict.items():
            tf.summary.histogram(f"{tag}/histogram", tensor, step=as_step(step))
            statistics = {
                "mean": tf.reduce_mean(tensor),
                "mean_abs": tf.reduce_mean(tf.abs(tensor)),
                "max": tf.reduce_max(tensor),
                "min": tf.reduce_min(tensor),
                "std": tf.math.reduce_std(tensor),
            }
            summarize_scalar_dict(statistics, step, name_scope=f"{tag}/")

    when_recording(write)


def summarize_histogram_dict(
    tensor_dict: Mapping[str, tf.Tensor | None], step: Any
) -> None:
    """Writes a histogram of each entry that is not None, under its own name."""

    def write() -> None:
        for tag, tensor in tensor_dict.items():
            if tensor is not None:
                tf.summary.histogram(tag, tensor, step=as_step(step))

    when_recording(write)


def add_variables_summaries(
    grads_and_vars: Iterable[tuple[Any, Any]], step: Any
) -> None:
    """Writes a histogram and the norm of each floating-point variable.

    The tags are `summarize_vars/NAME_value` and `summarize_vars/NAME_value_norm`.
    """
    values = {
        f"summarize_vars/{_tag(variable)}_value": variables_lib.as_tf_variable(variable)
        for _, variable in grads_and_vars
    }
    _summarize_norms(values, step)


def add_gradients_summaries(
    grads_and_vars: Iterable[tuple[Any, Any]], step: Any
) -> None:
    """Writes a histogram and the norm of each gradient that is not None.

    The tags are `summarize_grads/NAME_gradient` and `..._gradient_norm`, with the names
    of the variables. For a sparse gradient (`tf.IndexedSlices`), only the values are
    used.
    """
    gradients = {
        f"summarize_grads/{_tag(variable)}_gradient": getattr(
            gradient, "values", gradient
        )
        for gradient, variable in grads_and_vars
        if gradient is not None
    }
    _summarize_norms(gradients, step)


def _summarize_norms(tensors: Mapping[str, Any], step: Any) -> None:
    floats = {tag: x for tag, x in tensors.items() if x.dtype.is_floating}

    def write() -> None:
        for tag, tensor in floats.items():
            tf.summary.histogram(tag, tensor, step=as_step(step))
            norm = tf.linalg.global_norm([tensor])
            tf.summary.scalar(f"{tag}_norm", norm, step=as_step(step))

    when_recording(write)


def _tag(variable: Any) -> str:
    """Returns TensorFlow's name of the variable, `layer/kernel_0`, without a colon."""
    path = getattr(variable, "path", None)
    return f"{path}_0" if path else str(variable.name).replace(":", "_")
