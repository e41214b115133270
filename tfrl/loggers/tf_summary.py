"""Writes values as TensorBoard scalars."""

from __future__ import annotations

import numbers

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

        self._scalar = tf.summary.scalar
        self._writer = tf.summary.create_file_writer(str(logdir))
        self._prefix = f"{label}/" if label else ""
        self._steps_key = steps_key
        self._writes = 0

    def write(self, values: base.Values) -> None:
        """Writes the scalars and hands them to the operating system.

        Raises:
          ValueError: If `steps_key` is not among the keys.
        """
        if self._steps_key is not None and self._steps_key not in values:
            raise ValueError(
                f"values: got the keys {list(values)}, but the step is expected under "
                f"{self._steps_key!r} (steps_key); write it with the other values."
            )
        plain = {key: base.to_plain(value) for key, value in values.items()}
        step = self._writes if self._steps_key is None else plain[self._steps_key]
        with self._writer.as_default():
            for key, value in plain.items():
                if key != self._steps_key and isinstance(value, numbers.Real):
                    self._scalar(f"{self._prefix}{key}", value, step=int(step))
        self._writer.flush()
        self._writes += 1

    def close(self) -> None:
        """Closes the event file."""
        self._writer.close()
