"""Everything that `import tfrl` changes in the process, in this order.

With `TFRL_STARTUP=plain` in the environment it changes nothing, and the mathematics
stays the same. Only `TFRL_PORTABLE=1`, which is about the mathematics, does in both
cases what it does.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator

from tfrl import garbage, imports
from tfrl.compilation import program_cache
from tfrl.system import log, portable, quiet

VARIABLE = "TFRL_STARTUP"
_XLA_FLAGS = "XLA_FLAGS"
_GPU_FLAGS = {
    "--xla_gpu_enable_command_buffer": (
        "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,CONDITIONAL,WHILE,"
        "DYNAMIC_SLICE_FUSION,DYNAMIC_SLICE_COPY_FUSION"
    ),
    # A buffer pays for a single kernel, too, if a loop repeats it.
    "--xla_gpu_graph_min_graph_size": "1",
}
# What changes, when, and what it is for; the guide's table is written from it.
CHANGES = {
    "`sys.meta_path`": (
        "at once: a finder of tfrl is the first",
        "An import of what only TF-Agents or Acme has says what to write instead. The "
        "finder also sees the imports of TensorFlow, Keras and TensorFlow Probability, "
        "for the rows below.",
    ),
    "`TF_CPP_MIN_LOG_LEVEL`": (
        "at once, if it is not set: 2, or 1 on a machine with a GPU",
        "TensorFlow's C++ part writes errors alone, and on a GPU warnings.",
    ),
    "Python's garbage collector": (
        "around each of these imports: it is off, and then what exists is frozen",
        "Imports take a fifth less time, and later searches for garbage are short.",
    ),
    "`sys.modules`": (
        "while TensorFlow is imported: JAX, unless it has been imported, is hidden",
        "TensorFlow does not import it. Only `TFLiteConverter.experimental_from_jax` "
        "uses it, and needs JAX to be imported before TensorFlow.",
    ),
    "`TF_XLA_FLAGS`": (
        "while TensorFlow is imported, with a function of its numbers and one of "
        "`atexit` for good",
        "Compiled programs are kept for the next process.",
    ),
    "`XLA_FLAGS`": (
        "after the import of TensorFlow, on a machine with a GPU",
        "Compiled loops take up to a sixth less time.",
    ),
    "file descriptor 2": (
        "while TensorFlow is imported, with a child process that waits for a crash; "
        "and once when an algorithm is built",
        "TensorFlow's start-up messages do not hide a program's own output.",
    ),
}


def is_plain() -> bool:
    """Whether importing tfrl changes nothing in this process.

    Raises:
      ValueError: If `TFRL_STARTUP` has another value than "plain".
    """
    value = os.environ.get(VARIABLE, "")
    if value not in ("", "plain"):
        raise ValueError(
            f"{VARIABLE}: got {value!r}, expected 'plain', with which importing tfrl "
            "changes nothing in the process, or no value."
        )
    return value == "plain"


def start() -> None:
    """Makes the changes, and imports nothing heavy."""
    portable.install()
    if is_plain():
        return
    imports.install()
    quiet.choose_log_level()
    programs = (
        functools.partial(program_cache.turned_on, log.info),
        functools.partial(record_loops_on_gpu, quiet.has_visible_gpu, log.info),
    )
    without_jax = functools.partial(imports.hidden, "jax")
    if "tensorflow" in sys.modules:
        for context in programs:
            with context():
                pass
    imports.around(
        "tensorflow",
        garbage.permanent,
        without_jax,
        *programs,
        quiet.without_start_messages,
    )
    for package in ("keras", "tensorflow_probability"):
        imports.around(package, garbage.permanent)


@contextlib.contextmanager
def record_loops_on_gpu(
    has_gpu: Callable[[], bool], tell: Callable[[str], None]
) -> Iterator[None]:
    """Sets flags of XLA's for a GPU when TensorFlow has been imported in this context.

    A GPU starts what a command buffer (a CUDA graph) has recorded at once, and anything
    else kernel by kernel. TensorFlow's XLA records kernels and calls of libraries, but
    no loops. With loops recorded too, PPO, DQN and SAC trained 1.05 to 1.2 times as
    fast on an H100.

    It does so if there is a GPU and `XLA_FLAGS` says nothing about them. XLA reads the
    variable when it compiles a first program, and TensorFlow may make it do so when it
    makes the devices. If it may have been read already, nothing changes.

    Args:
      has_gpu: Returns whether TensorFlow may find a GPU.
      tell: Called with a line if it is too late.
    """
    yield
    set_by_user = os.environ.get(_XLA_FLAGS, "").strip()
    names_file = bool(set_by_user) and not set_by_user.startswith("-")
    if names_file or any(flag in set_by_user for flag in _GPU_FLAGS) or not has_gpu():
        return
    from tfrl.compilation import internals  # Not at the top: it imports NumPy.

    flags = " ".join(f"{flag}={value}" for flag, value in _GPU_FLAGS.items())
    if internals.has_made_devices():
        tell(
            "TensorFlow was used before tfrl was imported, so XLA does not record "
            "loops in command buffers, and compiled loops take up to a fifth longer "
            f"on a GPU. Import tfrl first, or set {_XLA_FLAGS}='{flags}'."
        )
        return
    os.environ[_XLA_FLAGS] = f"{set_by_user} {flags}".strip()
