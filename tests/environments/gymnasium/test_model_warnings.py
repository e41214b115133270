"""MuJoCo's warnings of Gymnasium's models, which a user cannot change."""

import gymnasium
import pytest

from tfrl.environments import suite_gym
from tfrl.environments.gymnasium import model_warnings

mujoco = pytest.importorskip("mujoco")
CHEETAH = gymnasium.spec("HalfCheetah-v5")


@pytest.fixture(autouse=True)
def without_handler():
    """Removes the handler of warnings for a test; dm_control sets one."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(None)
    yield
    mujoco.set_mju_user_warning(before)


def test_making_a_model_with_a_deprecated_word_tells_nothing(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    suite_gym.load("HalfCheetah-v5").close()
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())
    assert mujoco.get_mju_user_warning() is None


def test_other_warnings_become_pythons():
    with model_warnings.omitted(CHEETAH):
        tell = mujoco.get_mju_user_warning()
        with pytest.warns(RuntimeWarning, match="MuJoCo: Nan in QACC"):
            tell("Nan in QACC")


def test_a_handler_of_the_user_stays():
    told = []
    mujoco.set_mju_user_warning(told.append)
    with model_warnings.omitted(CHEETAH):
        mujoco.get_mju_user_warning()("deprecated")
    assert told == ["deprecated"]


def test_other_environments_are_left_alone():
    with model_warnings.omitted(gymnasium.spec("CartPole-v1")):
        assert mujoco.get_mju_user_warning() is None
