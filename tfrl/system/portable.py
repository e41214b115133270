"""Makes a seed give the same bits on more kinds of x86 processors, with AVX2 and FMA.

Libraries choose their code by the processor, and each choice rounds in its own way:
XLA, oneDNN (which multiplies TensorFlow's matrices) and NumPy by the widest vectors,
and YNNPACK (which multiplies compiled programs' small matrices) and OpenBLAS (which
multiplies NumPy's) by the model.
TensorFlow and OpenBLAS add up in another order with another number of threads. In a
portable process they all use what these processors have in common. The C library
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
_XLA_WORDS = {
    "--xla_cpu_max_isa": "AVX2",
    # Instructions that approximate 1 / sqrt(x), by other tables on Intel's and AMD's.
    "--xla_backend_extra_options": "xla_cpu_disable_platform_dependent_math",
    # YNNPACK, which multiplies matrices by code for the processor's model; without it
    # oneDNN does, which has a limit of its own.
    "--xla_cpu_experimental_ynn_fusion_type": "",
}
_SETTINGS = {
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",  # The first with AVX2.
    "OPENBLAS_NUM_THREADS": "1",
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
    settings = _settings()
    if all(os.environ.get(name) == value for name, value in settings.items()):
        return
    early = [name for name in ("numpy", "tensorflow") if name in sys.modules]
    if early:
        raise RuntimeError(
            f"{VARIABLE}: got {os.environ[VARIABLE]!r}, but {' and '.join(early)} has "
            "been imported before tfrl and has chosen its code; import tfrl first."
        )
    os.environ.update(settings)


def choose(*, is_portable: bool) -> None:
    """Makes this process as the user wants it: portable or not.

    Raises:
      ValueError: It shall not be portable, and `TFRL_PORTABLE` is set.
    """
    if is_portable and not is_on():
        start_again()
    if is_on() and not is_portable:
        raise ValueError(
            f"portable: got False, expected True, since {VARIABLE} is "
            f"{os.environ[VARIABLE]!r} in the environment; remove it from there."
        )


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
    # All are set here, since the program may import NumPy before tfrl.
    os.environ.update({VARIABLE: "1", **_settings()})
    if sys.stdout is not None:
        sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _settings() -> dict[str, str]:
    """Returns the variables of the environment of a portable process."""
    return {
        **_SETTINGS,
        "NPY_DISABLE_CPU_FEATURES": _wide_vectors(importlib.metadata.version("numpy")),
        _XLA_FLAGS: _flags(os.environ.get(_XLA_FLAGS, "")),
    }


def _flags(given: str) -> str:
    """Returns XLA's flags with the portable process's.

    Args:
      given: The flags of the user.
    """
    own = [f"{name}={value}" for name, value in _XLA_WORDS.items()]
    if {*own} <= {*given.split()}:
        return given
    words = [word for word in given.split() if word not in own]
    names_file = bool(words) and not given.strip().startswith("-")
    if names_file or any(word.partition("=")[0] in _XLA_WORDS for word in words):
        raise RuntimeError(
            f"{_XLA_FLAGS}: got {given!r}, expected flags without "
            f"{' and '.join(_XLA_WORDS)}, which {VARIABLE} sets; leave them out, and "
            "name no file."
        )
    return " ".join([*words, *own])


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
