"""Drawing without a display: what pygame and MuJoCo have to be told before they start.

Both read their environment variables once, pygame when it is first used and MuJoCo's
users when they are imported or first draw. What is set already stays as it is.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import functools
import glob
import os
import sys

# Where Mesa keeps the drivers that draw in software.
_MESA_DRIVERS = (
    "/usr/lib/*-linux-gnu/dri/swrast_dri.so",
    "/usr/lib*/dri/swrast_dri.so",
    "/usr/lib/*-linux-gnu/libgallium-*.so",
    "/usr/lib*/libgallium-*.so",
)


def prepare_rendering() -> None:
    """Lets pygame, and MuJoCo if it is imported, draw where there is no display.

    On Linux without `DISPLAY` and `WAYLAND_DISPLAY`, `SDL_VIDEODRIVER` becomes "dummy",
    unless it is set. Call it before anything is drawn.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    if not has_display():
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    if "mujoco" in sys.modules:
        prepare_mujoco()


def prepare_mujoco() -> None:
    """Lets MuJoCo draw where there is no display, and beside TensorFlow.

    On Linux without a display, `MUJOCO_GL` becomes what `headless_mujoco_gl` finds,
    unless it is set. Call it before anything is drawn, and before the first import of
    dm_control.
    """
    if sys.platform != "linux":
        return
    _load_mesa_apart_from_tensorflow()
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


@functools.cache
def _load_mesa_apart_from_tensorflow() -> None:
    """Loads Mesa's software driver such that it finds its own LLVM first.

    TensorFlow shows the functions of the LLVM inside of it to the whole process. Mesa,
    loaded later as usual, would call those instead of its own LLVM's, of another
    version, and the process would crash at the first picture.
    """
    # A replaced malloc has to be found before libc's by all libraries alike.
    if os.environ.get("LD_PRELOAD") or not hasattr(os, "RTLD_DEEPBIND"):
        return
    for pattern in _MESA_DRIVERS:
        for driver in glob.glob(pattern):
            # One that cannot be loaded here is not loaded later either.
            with contextlib.suppress(OSError):
                ctypes.CDLL(driver, mode=os.RTLD_NOW | os.RTLD_DEEPBIND)
