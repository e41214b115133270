"""MuJoCo's environments continue bit for bit."""

import functools

import pytest

from tfrl.environments import suite_mujoco
from tfrl.environments.gymnasium import mujoco_state

pytest.importorskip("mujoco")

TASKS = (
    "Ant",
    "HalfCheetah",
    "Hopper",
    "Humanoid",
    "HumanoidStandup",
    "InvertedDoublePendulum",
    "InvertedPendulum",
    "Pusher",
    "Reacher",
    "Swimmer",
    "Walker2d",
)
OLD = [f"{task}-v4" for task in TASKS if task != "Pusher"]  # It needs MuJoCo 2.


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", [f"{task}-v5" for task in TASKS] + OLD)
def test_a_task_continues_bit_for_bit(name, check_resuming):
    make = functools.partial(suite_mujoco.load, name, max_episode_steps=20)
    check_resuming(make, 12, more=25)


def test_the_arrays_that_are_derived_are_needed(check_resuming, monkeypatch):
    """The test before finds it if they are left out."""
    set_state = mujoco_state.set_state

    def forget_derived(env, state):
        set_state(env, {**state, "derived": {}})

    from tfrl.environments.gymnasium import state_adapters

    key = "gymnasium.envs.mujoco.ant_v5:AntEnv"
    monkeypatch.setitem(
        state_adapters._BUILT_IN,
        key,
        state_adapters._BUILT_IN[key]._replace(set_state=forget_derived),
    )
    with pytest.raises(AssertionError):
        check_resuming(functools.partial(suite_mujoco.load, "Ant-v5"), 12, more=3)


def test_the_state_of_another_model_is_refused():
    cheetah, ant = (suite_mujoco.load(n).gym for n in ("HalfCheetah-v5", "Ant-v5"))
    cheetah.reset()
    with pytest.raises(ValueError, match=r"state: got \d+ numbers of another model"):
        mujoco_state.set_state(ant.unwrapped, mujoco_state.get_state(cheetah.unwrapped))
