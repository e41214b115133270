"""What a compiled program depends on, apart from its source.

These are releases, flags, the processor and the GPUs. A program of another kind of
process must not be loaded: it may use instructions that this processor lacks, or give
other last digits.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import json
import os
import pathlib
import platform

from tfrl.compilation import processors
from tfrl.version import __version__

XLA_FLAGS = "XLA_FLAGS"
# Further variables that change what is compiled.
_VARIABLES = (
    XLA_FLAGS,
    "TF_XLA_FLAGS",
    "TF_ENABLE_ONEDNN_OPTS",
    "ONEDNN_MAX_CPU_ISA",
    "TF_NUM_INTRAOP_THREADS",
)


def settings() -> tuple[str, ...]:
    """Returns what may change in a process, until it compiles its first program."""
    import tensorflow as tf

    threads = tf.config.threading.get_intra_op_parallelism_threads()
    return (str(threads), *(os.environ.get(name, "") for name in _VARIABLES))


def kind() -> str:
    """Returns a text that is the same for processes that can share programs."""
    return json.dumps([__version__, *settings(), _flags_in_file(), *_machine()])


@functools.cache
def _machine() -> tuple[str, ...]:
    import tensorflow as tf

    version = tf.version
    libraries = sorted(pathlib.Path(tf.sysconfig.get_lib()).glob("libtensorflow*"))
    return (
        version.VERSION,
        version.GIT_VERSION,
        version.COMPILER_VERSION,
        *(str(library.stat().st_size) for library in libraries),
        platform.system(),
        platform.machine(),
        processors.identity(),
        *graphics(),
        # The compiler divides large operations among them.
        str(processors.number()),
    )


def _flags_in_file() -> str:
    """Returns the flags of XLA if their variable names a file that contains them."""
    flags = os.environ.get(XLA_FLAGS, "").strip()
    if not flags or flags.startswith("-"):
        return ""
    with contextlib.suppress(OSError):
        return pathlib.Path(flags).read_text(encoding="utf-8", errors="replace")
    return ""


def graphics(driver: str = "/proc/driver/nvidia") -> list[str]:
    """Returns NVIDIA's driver, GPUs and libraries; nothing if there is no driver.

    Args:
      driver: The folder in which the driver describes itself.
    """
    folder = pathlib.Path(driver)
    files = [folder / "version", *sorted(folder.glob("gpus/*/information"))]
    found = [_model(path) for path in files if path.is_file()]
    if found:
        # The compiler has chosen among the kernels of these libraries.
        packages = importlib.metadata.distributions()
        versions = {f"{package.name} {package.version}" for package in packages}
        found += sorted(x for x in versions if x.startswith("nvidia"))
    return found


def _model(path: pathlib.Path) -> str:
    """Returns what a file of the driver says of all GPUs of a model alike."""
    text = path.read_text(encoding="utf-8", errors="replace")
    models = [line for line in text.splitlines() if line.startswith("Model:")]
    return "\n".join(models) or text
