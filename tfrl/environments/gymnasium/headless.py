"""Prepares pygame and MuJoCo to draw where there is no display.

Both are configured by environment variables that they read once: pygame when it is
first used, the users of MuJoCo when they are imported or first draw. Variables that are
set already stay as they are.
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
    """Lets MuJoCo draw where there is no display and TensorFlow is loaded.

    On Linux without a display, `MUJOCO_GL` becomes the result of `headless_mujoco_gl`,
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
    """Whether windows can be opened; always True except on Linux."""
    return sys.platform != "linux" or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


@functools.cache
def headless_mujoco_gl() -> str | None:
    """Returns "egl" if its library is installed, else "osmesa" if installed, else None.

    EGL draws on a GPU, or in software if there is no GPU.
    """
    for backend, library in (("egl", "EGL"), ("osmesa", "OSMesa")):
        if ctypes.util.find_library(library):
            return backend
    return None


@functools.cache
def _load_mesa_apart_from_tensorflow() -> None:
    """Loads Mesa's software driver so that it uses its own LLVM.

    TensorFlow exports the functions of its built-in LLVM to the whole process. If Mesa
    were loaded later in the usual way, it would call these functions of another
    version, and the process would crash at the first picture.
    """
    if sys.platform == "win32" or not hasattr(os, "RTLD_DEEPBIND"):
        return
    # With a replaced malloc (LD_PRELOAD), deep binding would mix two allocators.
    if os.environ.get("LD_PRELOAD"):
        return
    for pattern in _MESA_DRIVERS:
        for driver in glob.glob(pattern):
            # A driver that fails to load here would fail later as well.
            with contextlib.suppress(OSError):
                ctypes.CDLL(driver, mode=os.RTLD_NOW | os.RTLD_DEEPBIND)
