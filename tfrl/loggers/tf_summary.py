"""Writes values as TensorBoard scalars."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from tensorboard.compat.proto import summary_pb2
from tensorboard.plugins.scalar import summary_v2 as scalar_summary

from tfrl.loggers import base


class TFSummaryLogger:
    """Writes a scalar `label/key` for each number; other values are left out."""

    def __init__(
        self, logdir: str, label: str = "Logs", steps_key: str | None = None
    ) -> None:
        """Creates a writer of event files in `logdir`.

        Args:
          logdir: The directory of the event files.
          label: The first part of the tags; empty for none.
          steps_key: The key under which the values hold the step; None takes the number
            of earlier writes as the step.
        """
        import tensorflow as tf

        self._write_raw = tf.summary.experimental.write_raw_pb
        self._writer = tf.summary.create_file_writer(str(logdir))
        self._prefix = f"{label}/" if label else ""
        self._steps_key = steps_key
        self._writes = 0

    def write(self, values: base.Values) -> None:
        """Writes the scalars, and passes them to the operating system.

        Raises:
          ValueError: If `steps_key` is not among the keys.
        """
        step = self._writes
        if self._steps_key is not None:
            step = int(base.step_of(values, self._steps_key))
        plain = {key: base.to_plain(value) for key, value in values.items()}
        # One summary of all values takes a fraction of the time of a summary for each
        # value.
        summary = summary_pb2.Summary()
        for key, value in plain.items():
            if key != self._steps_key and isinstance(value, numbers.Real):
                scalar = scalar_summary.scalar_pb(f"{self._prefix}{key}", float(value))
                summary.value.extend(scalar.value)
        self._write_summary(summary, step)
        self._writes += 1

    def write_hyperparameters(self, values: Mapping[str, Any]) -> None:
        """Writes the settings of a run, which TensorBoard shows with its scalars.

        Args:
          values: Booleans, numbers and texts by name; other values become texts.
        """
        from tensorboard.plugins.hparams import api

        plain = {
            name: value if isinstance(value, bool | int | float | str) else str(value)
            for name, value in values.items()
        }
        self._write_summary(api.hparams_pb(plain), 0)

    def _write_summary(self, summary: Any, step: int) -> None:
        with self._writer.as_default():
            # TensorFlow keeps each Python number that becomes a tensor, but not NumPy's
            # numbers.
            self._write_raw(summary.SerializeToString(), step=np.int64(step))
        self._writer.flush()

    def close(self) -> None:
        """Closes the event file."""
        self._writer.close()
