"""Makes a seed give the same bits on every x86 processor that has AVX2 and FMA.

Libraries choose their code by the processor, and each choice rounds in its own way: XLA
by the widest vectors, oneDNN (which also multiplies the matrices of plain TensorFlow)
and NumPy likewise. TensorFlow adds up in another order with another number of threads.
In a portable process they all use what these processors have in common. The C library
chooses, too, but between AVX2 and AVX-512 it makes no difference.

The libraries read the settings when they are imported, from the environment, so child
processes are portable as well.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from typing import NoReturn

VARIABLE = "TFRL_PORTABLE"
_XLA_FLAGS = "XLA_FLAGS"
_XLA_FLAG = "--xla_cpu_max_isa"
_SETTINGS = {
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
}


def is_on() -> bool:
    """Whether this process is portable."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def install() -> None:
    """Sets what the libraries read, if `TFRL_PORTABLE` is set.

    Raises:
      RuntimeError: A library has been imported before, and has read other settings; or
        `XLA_FLAGS` names a file or another limit.
    """
    if not is_on():
        return
    settings = {
        **_SETTINGS,
        "NPY_DISABLE_CPU_FEATURES": _wide_vectors(importlib.metadata.version("numpy")),
        _XLA_FLAGS: _flags(os.environ.get(_XLA_FLAGS, "")),
    }
    if all(os.environ.get(name) == value for name, value in settings.items()):
        return
    early = [name for name in ("numpy", "tensorflow") if name in sys.modules]
    if early:
        raise RuntimeError(
            f"{VARIABLE}: got {os.environ[VARIABLE]!r}, but {' and '.join(early)} has "
            "been imported before tfrl and has chosen its code; import tfrl first."
        )
    os.environ.update(settings)


def start_again() -> NoReturn:
    """Replaces this process by a portable one with the same command line.

    Raises:
      ValueError: On Windows, where a process cannot be replaced.
    """
    if sys.platform == "win32":
        raise ValueError(
            f"portable: a process cannot start again on Windows; set {VARIABLE}=1 in "
            "the environment instead."
        )
    os.environ[VARIABLE] = "1"
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _flags(given: str) -> str:
    """Returns XLA's flags with the limit.

    Args:
      given: The flags of the user.
    """
    limit = f"{_XLA_FLAG}=AVX2"
    words = given.split()
    if limit in words:
        return given
    if _XLA_FLAG in given or (words and not given.strip().startswith("-")):
        raise RuntimeError(
            f"{_XLA_FLAGS}: got {given!r}, expected flags without {_XLA_FLAG}, which "
            f"{VARIABLE} sets; leave it out, and name no file."
        )
    return " ".join([*words, limit])


def _wide_vectors(numpy: str) -> str:
    """Returns NumPy's names of the instruction sets with vectors wider than AVX2's.

    Args:
      numpy: The version of NumPy, which warns of names that it does not have.
    """
    major, minor, *_ = map(int, numpy.split(".")[:2])
    if (major, minor) < (2, 4):
        names = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL"
    else:
        names = "X86_V4"
    return f"{names} AVX512_ICL AVX512_SPR"
