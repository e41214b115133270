"""Says which processor measured."""

from __future__ import annotations

import pathlib
import platform

# The widest vectors first: libraries choose their code, and so their rounding, by them.
_VECTORS = ("avx512f", "avx2", "avx", "sse4_1")


def name() -> str:
    """Returns the name that the processor gives itself."""
    return _fields().get("model name") or platform.processor() or platform.machine()


def description() -> str:
    """Returns the name, and the kind of its widest vectors, if they are known."""
    flags = _fields().get("flags", "").split()
    vectors = [kind for kind in _VECTORS if kind in flags][:1]
    return " ".join([name(), *vectors])


def _fields() -> dict[str, str]:
    """Returns what Linux says about the last of the cores; nothing elsewhere."""
    path = pathlib.Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    lines = (line.partition(":") for line in path.read_text().splitlines())
    return {field.strip(): value.strip() for field, _, value in lines}
