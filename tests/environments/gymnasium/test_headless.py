import os
import sys

import pytest

from tfrl.environments.gymnasium import headless

VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL", "SDL_VIDEODRIVER", "LD_PRELOAD")


@pytest.fixture
def machine(monkeypatch):
    """Sets up a machine; returns the drivers that were loaded, and how.

    It has a system, libraries and environment variables, and MuJoCo.
    """
    loaded = []

    def set_up(platform="linux", libraries=("EGL", "OSMesa"), **variables):
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(headless.sys, "platform", platform)
        monkeypatch.setattr(
            headless.ctypes.util,
            "find_library",
            lambda name: f"lib{name}.so.1" if name in libraries else None,
        )
        clear_caches()
        return loaded

    def clear_caches():
        headless.headless_mujoco_gl.cache_clear()
        headless._load_mesa_apart_from_tensorflow.cache_clear()

    def load(path, mode):
        loaded.append((path, mode))
        if "broken" in path:
            raise OSError

    monkeypatch.setitem(sys.modules, "mujoco", sys)
    monkeypatch.setattr(headless.ctypes, "CDLL", load)
    monkeypatch.setattr(headless, "_MESA_DRIVERS", ("broken", "driver"))
    monkeypatch.setattr(headless.glob, "glob", lambda pattern: [f"/{pattern}.so"])
    # `prepare_rendering` sets these; monkeypatch puts back what was there before.
    for name in VARIABLES:
        monkeypatch.setenv(name, "")
    yield set_up
    clear_caches()


def variables():
    return {name: os.environ[name] for name in VARIABLES if name in os.environ}


def test_without_a_display_pictures_are_drawn_off_screen(machine):
    machine()
    headless.prepare_rendering()
    assert variables() == {"MUJOCO_GL": "egl", "SDL_VIDEODRIVER": "dummy"}


def test_the_users_choice_stays(machine):
    machine(MUJOCO_GL="osmesa", SDL_VIDEODRIVER="x11")
    headless.prepare_rendering()
    assert variables() == {"MUJOCO_GL": "osmesa", "SDL_VIDEODRIVER": "x11"}


@pytest.mark.parametrize(
    "setting", [{"DISPLAY": ":0"}, {"WAYLAND_DISPLAY": "wayland-0"}]
)
def test_with_a_display_nothing_changes(machine, setting):
    machine(**setting)
    headless.prepare_rendering()
    assert variables() == setting


def test_other_systems_are_left_alone(machine):
    loaded = machine(platform="darwin")
    headless.prepare_rendering()
    assert variables() == {}
    assert loaded == []


def test_without_mujoco_only_pygame_is_prepared(machine, monkeypatch):
    loaded = machine()
    monkeypatch.delitem(sys.modules, "mujoco")
    headless.prepare_rendering()
    assert variables() == {"SDL_VIDEODRIVER": "dummy"}
    assert loaded == []


def test_mesa_is_loaded_once_and_finds_its_own_llvm_first(machine):
    loaded = machine()
    headless.prepare_mujoco()
    headless.prepare_mujoco()
    assert [path for path, _ in loaded] == ["/broken.so", "/driver.so"]
    assert all(mode & os.RTLD_DEEPBIND for _, mode in loaded)


def test_mesa_is_left_alone_where_malloc_is_replaced(machine):
    loaded = machine(LD_PRELOAD="libtcmalloc.so")
    headless.prepare_mujoco()
    assert loaded == []


@pytest.mark.parametrize(
    ("libraries", "expected"),
    [(("OSMesa",), {"MUJOCO_GL": "osmesa"}), ((), {})],
)
def test_mujoco_gets_what_is_installed(machine, libraries, expected):
    machine(libraries=libraries)
    headless.prepare_mujoco()
    assert variables() == expected
