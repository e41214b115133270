import sys
import types

import gymnasium
import pytest

from tfrl.environments import suite_pybullet, wrappers


@pytest.fixture
def _pybullet(monkeypatch):
    """Stand-ins for PyBullet and its tasks, which have no wheels for all Pythons.

    They have registered a task, as importing the real ones does.
    """
    for name in ("pybullet", "pybullet_envs_gymnasium"):
        module = types.ModuleType(name)
        module.__spec__ = types.SimpleNamespace(name=name)
        monkeypatch.setitem(sys.modules, name, module)
    gymnasium.register(
        "FakeBulletEnv-v0",
        entry_point="gymnasium.envs.classic_control:PendulumEnv",
        max_episode_steps=9,
    )
    yield
    del gymnasium.registry["FakeBulletEnv-v0"]


@pytest.mark.usefixtures("_pybullet")
def test_loads_as_suite_gym_does():
    assert suite_pybullet.is_available()
    environment = suite_pybullet.load(
        "FakeBulletEnv-v0", 0.5, env_wrappers=[wrappers.RunStats]
    )
    assert isinstance(environment, wrappers.RunStats)
    assert environment.duration == 9


@pytest.mark.usefixtures("_pybullet")
def test_an_unknown_task_is_an_error():
    with pytest.raises(ValueError, match="did you mean FakeBulletEnv-v0"):
        suite_pybullet.load("FakeBuletEnv-v0")
