"""Writes metrics to the log."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

_logger = logging.getLogger(__name__)


def export_metrics(step: Any, metrics: Iterable[Any], loss_info: Any = None) -> None:
    """Logs `[step=...] name = value` for each metric at level INFO.

    Args:
      step: The number to log as the step.
      metrics: `PyMetric`s or `TFStepMetric`s.
      loss_info: A `LossInfo`, whose loss is logged too, if given.
    """
    named = [(metric.name, metric.result()) for metric in metrics]
    if loss_info is not None:
        named.append(("loss", loss_info.loss))
    for name, value in named:
        _logger.info("[step=%s] %s = %s", plain(step), name, plain(value))


def log_metrics(metrics: Iterable[Any], prefix: str = "") -> None:
    """Logs `name = result` for each metric at level INFO, in one message."""
    lines = [f"{metric.name} = {plain(metric.result())}" for metric in metrics]
    _logger.info("%s \n\t\t %s", prefix, "\n\t\t ".join(lines))


def plain(result: Any) -> Any:
    """Returns a result with its tensors as NumPy values."""
    return tf.nest.map_structure(
        lambda leaf: leaf.numpy() if hasattr(leaf, "numpy") else leaf, result
    )
