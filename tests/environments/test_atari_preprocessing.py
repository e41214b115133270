import ale_py
import cv2
import gymnasium
import numpy as np
import pytest

from tfrl.environments.atari_preprocessing import AtariPreprocessing

gymnasium.register_envs(ale_py)


def make(name="BreakoutNoFrameskip-v4", **kwargs):
    return AtariPreprocessing(gymnasium.make(name), **kwargs)


def grey(env):
    return env.unwrapped.ale.getScreenGrayscale()


def lose_a_life(env):
    """Fires and waits; returns the result of the `step` that lost the ball."""
    env.step(1)
    for _ in range(100):
        result = env.step(0)
        if result[2] or env.ale.lives() < 5:
            return result
    raise AssertionError("the ball was never lost")


@pytest.mark.parametrize("frame_skip", [2, 4])
def test_pictures_are_the_maximum_of_the_last_two_frames(frame_skip):
    env, raw = make(frame_skip=frame_skip), gymnasium.make("BreakoutNoFrameskip-v4")
    env.reset(seed=0)
    raw.reset(seed=0)
    for step in range(12):
        action = 1 if step == 0 else 2 + step % 2
        observation, reward, *_ = env.step(action)
        frames, rewards = [], []
        for _ in range(frame_skip):
            rewards.append(raw.step(action)[1])
            frames.append(grey(raw))
        expected = cv2.resize(
            np.maximum(*frames[-2:]), (84, 84), interpolation=cv2.INTER_AREA
        )
        np.testing.assert_array_equal(observation, expected[..., None])
        assert reward == sum(rewards)


def test_single_frames_are_shown_as_they_are():
    env = make(frame_skip=1, screen_size=60)
    env.reset(seed=0)
    observation = env.step(1)[0]
    expected = cv2.resize(grey(env), (60, 60), interpolation=cv2.INTER_AREA)
    np.testing.assert_array_equal(observation[..., 0], expected)


def test_observations_are_in_their_space():
    env = make()
    assert env.observation_space == gymnasium.spaces.Box(0, 255, (84, 84, 1), np.uint8)
    for observation in (env.reset(seed=0)[0], env.step(0)[0]):
        assert env.observation_space.contains(observation)


def test_the_first_picture_is_the_first_frame():
    env = make()
    observation, _ = env.reset(seed=0)
    expected = cv2.resize(grey(env), (84, 84), interpolation=cv2.INTER_AREA)
    np.testing.assert_array_equal(observation[..., 0], expected)
    assert env.ale.getEpisodeFrameNumber() <= 1


def test_a_lost_life_does_not_end_the_episode_by_default():
    env = make()
    env.reset(seed=0)
    _, _, terminated, truncated, info = lose_a_life(env)
    assert (terminated, truncated, info["lives"]) == (False, False, 4)
    assert not env.life_lost


def test_a_lost_life_ends_the_episode_but_not_the_game():
    env = make(terminal_on_life_loss=True)
    env.reset(seed=0)
    _, _, terminated, truncated, _ = lose_a_life(env)
    assert (terminated, truncated, env.life_lost, env.game_over) == (
        True,
        False,
        True,
        False,
    )
    frame = env.ale.getEpisodeFrameNumber()
    observation, info = env.reset()
    assert (info["lives"], env.ale.getEpisodeFrameNumber()) == (4, frame)
    expected = cv2.resize(grey(env), (84, 84), interpolation=cv2.INTER_AREA)
    np.testing.assert_array_equal(observation[..., 0], expected)
    assert not env.life_lost


@pytest.mark.parametrize("kwargs", [{"seed": 1}, {"options": {}}])
def test_a_reset_with_a_seed_or_options_starts_a_new_game(kwargs):
    env = make(terminal_on_life_loss=True)
    env.reset(seed=0)
    lose_a_life(env)
    assert env.reset(**kwargs)[1]["lives"] == 5


def test_a_second_reset_starts_a_new_game():
    env = make(terminal_on_life_loss=True)
    env.reset(seed=0)
    lose_a_life(env)
    env.reset()
    assert env.reset()[1]["lives"] == 5


def test_the_last_life_ends_the_game():
    env = make(terminal_on_life_loss=True)
    env.reset(seed=0)
    ends = 0
    while not env.game_over:
        if env.step(1)[2]:
            ends += 1
            if not env.game_over:
                env.reset()
    assert (ends, env.life_lost) == (5, False)
    assert env.reset()[1]["lives"] == 5
    assert not env.game_over


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"frame_skip": 0}, r"frame_skip: .* got 0"),
        ({"screen_size": -1}, r"screen_size: .* got -1"),
        ({"name": "Breakout-v4"}, r"env: .* for \(2, 5\) frames itself.*NoFrameskip"),
        ({"name": "ALE/Breakout-v5"}, "env: .* for 4 frames itself.*frameskip=1"),
    ],
)
def test_wrong_arguments_are_errors(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make(**kwargs)


def test_observations_of_memory_are_refused():
    env = gymnasium.make("PongNoFrameskip-v4", obs_type="ram")
    with pytest.raises(ValueError, match=r"env: got .*\(128,\).*gym_env_wrappers=\(\)"):
        AtariPreprocessing(env)
