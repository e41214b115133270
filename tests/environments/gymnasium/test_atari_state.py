"""Games of ale-py continue bit for bit, with sticky actions and between lives."""

import functools

import numpy as np
import pytest

from tfrl.environments import (
    atari_preprocessing,
    atari_wrappers,
    py_environment,
    suite_atari,
)
from tfrl.environments.gymnasium import atari_state

pytest.importorskip("ale_py")
STACKED = suite_atari.DEFAULT_ATARI_GYM_WRAPPERS_WITH_STACKING


def test_a_game_continues_bit_for_bit(check_resuming):
    make = functools.partial(
        suite_atari.load,
        "PongNoFrameskip-v4",
        max_episode_steps=20,
        gym_env_wrappers=STACKED,
    )
    check_resuming(make, 0, 1, 25, more=30)


@pytest.mark.slow
@pytest.mark.parametrize(
    "stickiness", [0.25, pytest.param(0.6, marks=pytest.mark.slow)]
)
def test_a_game_with_sticky_actions_continues_bit_for_bit(stickiness, check_resuming):
    make = functools.partial(
        suite_atari.load,
        "ALE/Pong-v5",
        gym_env_wrappers=(),
        gym_kwargs={
            "repeat_action_probability": stickiness,
            "frameskip": 1,
            "obs_type": "ram",
        },
    )
    # With this seed the console repeats its last action after some of these steps.
    check_resuming(make, 20, 23, 26, more=20)


def test_the_repeated_action_is_needed(check_resuming, monkeypatch):
    """The test before finds it if the repeated action is left out."""
    monkeypatch.setattr(atari_state, "_repeated_action", lambda env, state: None)
    make = functools.partial(
        suite_atari.load,
        "ALE/Pong-v5",
        gym_env_wrappers=(),
        gym_kwargs={
            "repeat_action_probability": 0.6,
            "obs_type": "ram",
            "frameskip": 1,
        },
    )
    # The console repeats its last action in the next frame.
    with pytest.raises(AssertionError):
        check_resuming(make, 26, more=20)


@pytest.mark.slow
def test_a_game_continues_after_it_ended(check_resuming):
    make = functools.partial(
        suite_atari.load,
        "ALE/Breakout-v5",
        gym_env_wrappers=(),
        gym_kwargs={"obs_type": "ram", "frameskip": 8},
    )
    environment = make()
    environment.seed(3)
    rng = np.random.default_rng(0)
    steps = 1
    environment.reset()
    while not environment.step(rng.integers(0, 4)).is_last():
        steps += 1
    # `check_resuming` draws the same actions; the first step resets.
    check_resuming(make, steps + 1, more=5)


def test_a_lost_life_continues_with_the_same_picture(check_resuming):
    def make():
        return suite_atari.load(
            "ALE/Breakout-v5",
            gym_env_wrappers=(
                functools.partial(
                    atari_preprocessing.AtariPreprocessing, terminal_on_life_loss=True
                ),
                atari_wrappers.FrameStack4,
                atari_wrappers.FireOnReset,
            ),
            gym_kwargs={"repeat_action_probability": 0.0},
        )

    environment, other = make(), make()
    environment.seed(3)
    environment.reset()
    while not environment.life_lost:
        environment.step(0 if environment.current_time_step().is_first() else 3)
    py_environment.restore_state(other, py_environment.capture_state(environment))
    for action in (0, 2, 3):
        np.testing.assert_array_equal(
            other.step(action).observation, environment.step(action).observation
        )


def test_sticky_continuous_actions_have_no_state():
    environment = suite_atari.load(
        "ALE/Pong-v5", gym_env_wrappers=(), gym_kwargs={"continuous": True}
    )
    environment.reset()
    with pytest.raises(NotImplementedError, match=r"AtariEnv\.get_state: .* sticky"):
        environment.get_state()
