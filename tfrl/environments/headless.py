"""Drawing without a display: what pygame and MuJoCo have to be told before they start.

Both read their environment variables once, pygame when it is first used and MuJoCo's
users when they are imported or first draw. What is set already stays as it is.
"""

from __future__ import annotations

import ctypes.util
import functools
import os
import sys


def prepare_rendering() -> None:
    """Lets pygame and MuJoCo draw where there is no display; call it before they do.

    On Linux without `DISPLAY` and `WAYLAND_DISPLAY`, `SDL_VIDEODRIVER` becomes "dummy"
    and `MUJOCO_GL` what `headless_mujoco_gl` finds, unless they are set.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    if not has_display():
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    prepare_mujoco()


def prepare_mujoco() -> None:
    """Sets `MUJOCO_GL` where there is no display, unless it is set."""
    if "MUJOCO_GL" in os.environ or has_display():
        return
    backend = headless_mujoco_gl()
    if backend is not None:
        os.environ["MUJOCO_GL"] = backend


def has_display() -> bool:
    """Whether windows can be opened; taken for granted except on Linux."""
    return sys.platform != "linux" or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


@functools.cache
def headless_mujoco_gl() -> str | None:
    """Returns "egl" or else "osmesa" if its library is installed, None if neither is.

    EGL draws on a GPU, and without one in software.
    """
    for backend, library in (("egl", "EGL"), ("osmesa", "OSMesa")):
        if ctypes.util.find_library(library):
            return backend
    return None
