"""Everything that `import tfrl` changes in the process, in this order.

With `TFRL_STARTUP=plain` in the environment it changes nothing, and the mathematics
stays the same. Only `TFRL_PORTABLE=1`, which is about the mathematics, does in both
cases what it does.
"""

from __future__ import annotations

import functools
import os
import sys

from tfrl import garbage, imports
from tfrl.compilation import gpu_flags, program_cache
from tfrl.system import log, portable, quiet

VARIABLE = "TFRL_STARTUP"
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
        functools.partial(gpu_flags.chosen, quiet.has_visible_gpu, log.info),
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
