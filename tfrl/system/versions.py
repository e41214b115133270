"""The versions of the packages, and the machine, that a run's numbers depend on."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import shutil
import subprocess

from tfrl.compilation import processors
from tfrl.system import portable

_PACKAGES = (
    "tfrl",
    "tensorflow",
    "keras",
    "tensorflow-probability",
    "numpy",
    "gymnasium",
)


@functools.cache
def found() -> dict[str, str]:
    """Returns versions by name: packages, Python, system, processor, the commit.

    The entry `portable` is "yes" in a portable process, see `portable`, and lacks in
    others. The commit belongs to the folder in which the program runs, if it is a
    checkout.
    """
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    versions["system"] = platform.platform()
    versions["processor"] = f"{platform.machine()} {processors.description()}".strip()
    if portable.is_on():
        versions["portable"] = "yes"
    commit = _commit()
    return versions | ({"commit": commit} if commit else {})


def _commit() -> str:
    git = shutil.which("git")
    if git is None:
        return ""
    command = [git, "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=2, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
