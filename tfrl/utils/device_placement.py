"""Where operations run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf


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
