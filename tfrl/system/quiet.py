"""Keeps TensorFlow's start-up messages from burying a program's own lines."""

from __future__ import annotations

import logging
import os
import sys
import tempfile

from absl import logging as absl_logging


def quieten_tensorflow() -> None:
    """Imports TensorFlow and finds its devices without the messages of doing so.

    Some of them are written before any log level is in force, so standard error is held
    back meanwhile; if the import fails, it is shown after all. Later messages are
    limited to warnings, those of its C++ part to errors unless `TF_CPP_MIN_LOG_LEVEL`
    is set already.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as held_back:
        os.dup2(held_back.fileno(), 2)
        try:
            import tensorflow as tf

            tf.config.list_logical_devices()
            tf.get_logger().setLevel(logging.WARNING)
            absl_logging.set_verbosity(absl_logging.WARNING)
        except BaseException:
            os.dup2(stderr, 2)
            held_back.seek(0)
            os.write(2, held_back.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
