import sys

import pytest

from tfrl.environments import (
    extras,
    suite_atari,
    suite_bsuite,
    suite_dm_control,
    suite_envpool,
    suite_mujoco,
    suite_pybullet,
)


def test_what_can_be_imported_is_installed():
    assert extras.is_installed("json", "numpy")
    assert not extras.is_installed("json", "no_such_module")


def test_require_names_what_is_missing_and_how_to_install_it():
    extras.require("suite", "pip install x", "json")
    with pytest.raises(ImportError) as error:
        extras.require("suite", "pip install x", "json", "nothing", note="tomorrow")
    assert str(error.value) == (
        "suite: got no module 'nothing', expected the packages the suite needs; "
        "install them with: pip install x (tomorrow)"
    )


@pytest.mark.parametrize(
    ("suite", "module", "arguments", "command"),
    [
        (suite_atari, "ale_py", ["ALE/Pong-v5"], "pip install 'tfrl[atari]'"),
        (suite_atari, "cv2", ["ALE/Pong-v5"], "pip install 'tfrl[atari]'"),
        (suite_bsuite, "bsuite", ["catch/0"], "pip install 'tfrl[bsuite]'"),
        (
            suite_dm_control,
            "dm_control",
            ["cartpole", "swingup"],
            "pip install 'tfrl[dm-control]'",
        ),
        (suite_envpool, "envpool", ["Pong-v5"], "pip install 'tfrl[envpool]'"),
        (suite_mujoco, "mujoco", ["HalfCheetah-v5"], "pip install 'tfrl[mujoco]'"),
        (
            suite_pybullet,
            "pybullet",
            ["HalfCheetahBulletEnv-v0"],
            "pip install pybullet-envs-gymnasium",
        ),
    ],
)
def test_without_its_extra_a_suite_says_what_to_install(
    monkeypatch, suite, module, arguments, command
):
    # The import system takes None for a module that cannot be imported.
    monkeypatch.setitem(sys.modules, module, None)
    assert not suite.is_available()
    with pytest.raises(ImportError) as error:
        suite.load(*arguments)
    assert f"{module!r}" in str(error.value)
    assert command in str(error.value)


def test_pixels_say_what_to_install_too(monkeypatch):
    monkeypatch.setitem(sys.modules, "dm_control", None)
    with pytest.raises(ImportError, match=r"pip install 'tfrl\[dm-control\]'"):
        suite_dm_control.load_pixels("cartpole", "swingup")


def test_dm_control_says_which_pythons_it_is_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "dm_control", None)
    monkeypatch.setattr(sys, "version_info", (3, 13, 0))
    with pytest.raises(ImportError, match=r"dm-control\]' \(on Python 3.11 or 3.12"):
        suite_dm_control.load("cartpole", "swingup")
