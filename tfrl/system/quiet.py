"""Keeps TensorFlow's start-up messages from hiding a program's own output.

`tfrl.startup` makes the import of TensorFlow quiet wherever tfrl is imported first.
`TF_CPP_MIN_LOG_LEVEL=0` shows every message.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from tfrl.system import log

# The kernel's NVIDIA driver lists its GPUs here, even without CUDA's libraries.
_NVIDIA_GPUS = "proc/driver/nvidia/gpus"

_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"

# Informational messages, the notice that comes before the first of them, and the second
# line of one. A machine without a GPU reports, as an error, that CUDA does not start.
_NOISE = re.compile(
    rb"I\d{4} "
    rb"|WARNING: All log messages before absl::InitializeLog\(\) is called"
    rb"|To enable the following instructions:"
)
_NOISE_WITHOUT_GPU = re.compile(_NOISE.pattern + rb"|E\d{4} .* failed call to cuInit:")

# Nothing is wrong: such operations run without oneDNN.
_ONEDNN_NOTICE = re.compile(rb"E\d{4} .* oneDNN supports \w+ only on platforms with ")


def choose_log_level() -> None:
    """Lets TensorFlow's C++ part write only errors, unless the user wants otherwise.

    On a machine with an NVIDIA GPU it also writes warnings, because a warning explains
    why TensorFlow cannot use the GPU.
    """
    os.environ.setdefault(_LOG_LEVEL, "1" if has_visible_gpu() else "2")


def quieten_tensorflow() -> None:
    """Imports TensorFlow without its start-up messages, and limits it to warnings.

    No logical device is made, so memory growth can still be set. If the machine has a
    GPU that TensorFlow cannot use, a line on standard error reports this.
    """
    import tensorflow as tf
    from absl import logging as absl_logging

    tf.get_logger().setLevel(logging.WARNING)
    absl_logging.set_verbosity(absl_logging.WARNING)
    if has_visible_gpu() and not tf.config.list_physical_devices("GPU"):
        log.info(
            "This machine has an NVIDIA GPU, but TensorFlow cannot use it and computes "
            "on the CPU. Install CUDA's libraries with pip install 'tfrl[gpu]'; "
            f"{_LOG_LEVEL}=0 shows TensorFlow's own reasons."
        )


@functools.cache
def take_onednn_notice() -> None:
    """Lets TensorFlow report now, unseen, that oneDNN has no kernels for bytes.

    On a processor without AVX-512 TensorFlow reports this as an error, once, when an
    operation that oneDNN might do first gets integers. This function does such an
    operation, so it makes the logical devices.
    """
    if os.environ.get(_LOG_LEVEL) == "0":
        return
    import tensorflow as tf

    with _standard_error_without(_ONEDNN_NOTICE), tf.device("CPU:0"):
        tf.transpose(tf.zeros([1, 2], tf.uint8))


def has_visible_gpu(root: str = "/") -> bool:
    """Whether the driver lists an NVIDIA GPU that `CUDA_VISIBLE_DEVICES` does not hide.

    Args:
      root: The folder that contains `/proc`.
    """
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0") in ("", "-1"):
        return False
    gpus = pathlib.Path(root, _NVIDIA_GPUS)
    return gpus.is_dir() and any(gpus.iterdir())


@contextlib.contextmanager
def without_start_messages() -> Iterator[None]:
    """Hides the messages of TensorFlow's import, which happens in this context.

    They are those that are written before TensorFlow knows its level. In a notebook
    TensorFlow's Python part is limited to warnings, too.
    """
    if os.environ.get(_LOG_LEVEL) == "0":
        yield
        return
    without_gpu = not has_visible_gpu()
    with _standard_error_without(_NOISE_WITHOUT_GPU if without_gpu else _NOISE):
        yield
        tensorflow = sys.modules["tensorflow"]
        if without_gpu:
            # Otherwise the first operation reports that CUDA does not start.
            tensorflow.config.list_physical_devices()
    if hasattr(sys, "ps1"):  # In a notebook, or another interactive shell.
        # TensorFlow prints there, twice, each model that it saves.
        tensorflow.get_logger().setLevel(logging.WARNING)


@contextlib.contextmanager
def _standard_error_without(noise: re.Pattern[bytes]) -> Iterator[None]:
    """Removes lines from standard error, unless an error is raised meanwhile.

    A KeyboardInterrupt by Ctrl-C does not count as an error. If the process dies
    meanwhile, another process, which waits for this, shows all lines.
    """
    try:
        stderr = os.dup(2)
    except OSError:  # Standard error is closed, as in a daemon.
        yield
        return
    with contextlib.ExitStack() as stack:
        try:
            held_back = stack.enter_context(tempfile.NamedTemporaryFile())
            stack.enter_context(_shown_after_death(held_back.name))
        except OSError:  # There is no shell, or no place for the lines.
            os.close(stderr)
            yield
            return
        os.dup2(held_back.fileno(), 2)
        succeeded = False
        try:
            yield
            succeeded = True
        except KeyboardInterrupt:
            succeeded = True
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            held_back.seek(0)
            for line in held_back:
                if not (succeeded and noise.match(line)):
                    os.write(2, line)


@contextlib.contextmanager
def _shown_after_death(path: str) -> Iterator[None]:
    """Starts a process that shows and removes a file if this process dies meanwhile."""
    with subprocess.Popen(
        ["/bin/sh", "-c", 'read -r line || { cat "$1"; rm -f "$1"; } >&2', "sh", path],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        # So Ctrl-C does not reach it.
        start_new_session=True,
    ) as process:
        try:
            yield
        finally:
            process.communicate(b"\n")
