"""Says which processor this is, and how many this process may use."""

from __future__ import annotations

import contextlib
import os
import pathlib
import platform
import subprocess

# What says which processor it is, on all architectures.
_IDENTITY = (
    "vendor_id",
    "cpu family",
    "model",
    "model name",
    "stepping",
    "flags",
    "Features",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
)
# The widest vectors first: libraries choose their code, and so their rounding, by them.
_VECTORS = ("avx512f", "avx2", "avx", "sse4_1")


def number() -> int:
    """Returns the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def name() -> str:
    """Returns the name that the processor gives itself."""
    return (
        _fields().get("model name")
        or _brand_on_macos()
        or platform.processor()
        or platform.machine()
    )


def description() -> str:
    """Returns the name, and the kind of its widest vectors, if they are known."""
    flags = _fields().get("flags", "").split()
    vectors = [kind for kind in _VECTORS if kind in flags][:1]
    return " ".join([name(), *vectors])


def identity() -> str:
    """Returns the model and instruction sets, a line each; outside Linux, the name."""
    fields = _fields()
    lines = [f"{field}: {fields[field]}" for field in _IDENTITY if field in fields]
    return "\n".join(lines) or name()


def _fields() -> dict[str, str]:
    """Returns what Linux says about the last of the cores; nothing elsewhere."""
    path = pathlib.Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    lines = (line.partition(":") for line in path.read_text().splitlines())
    return {field.strip(): value.strip() for field, _, value in lines}


def _brand_on_macos() -> str:
    command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(
            command, capture_output=True, text=True, timeout=2, check=True
        ).stdout.strip()
    return ""
