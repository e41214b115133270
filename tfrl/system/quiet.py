"""Keeps TensorFlow's start-up messages from burying a program's own lines."""

from __future__ import annotations

import logging
import os
import pathlib
import sys
import tempfile

from absl import logging as absl_logging

# The kernel's NVIDIA driver lists its GPUs here; it does so without CUDA's libraries.
_NVIDIA_GPUS = "proc/driver/nvidia/gpus"


def quieten_tensorflow() -> None:
    """Imports TensorFlow and finds its devices without its start-up messages.

    TensorFlow writes some of them before any log level applies, so standard error is
    held back during the import; if the import fails, the messages are shown. Later
    messages are limited to warnings, those of TensorFlow's C++ part to errors unless
    `TF_CPP_MIN_LOG_LEVEL` is set already. Where the machine has a GPU that TensorFlow
    cannot use, one line on standard error says so.
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
    if not tf.config.list_physical_devices("GPU") and has_visible_gpu():
        print(
            "This machine has an NVIDIA GPU, but TensorFlow cannot use it and computes "
            "on the CPU. Install CUDA's libraries with pip install 'tfrl[gpu]'; "
            "TF_CPP_MIN_LOG_LEVEL=0 shows TensorFlow's own reasons.",
            file=sys.stderr,
        )


def has_visible_gpu(root: str = "/") -> bool:
    """Whether the driver lists an NVIDIA GPU that `CUDA_VISIBLE_DEVICES` does not hide.

    Args:
      root: The folder that `/proc` is in.
    """
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0") in ("", "-1"):
        return False
    gpus = pathlib.Path(root, _NVIDIA_GPUS)
    return gpus.is_dir() and any(gpus.iterdir())
