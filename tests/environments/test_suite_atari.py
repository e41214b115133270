import functools
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from tfrl.environments import (
    atari_wrappers,
    extras,
    parallel_py_environment,
    suite_atari,
    tf_py_environment,
    utils,
    wrappers,
)
from tfrl.environments.atari_preprocessing import AtariPreprocessing


def run(environment, seed, steps=40):
    """Returns the rewards and a checksum of the pictures of a random run."""
    environment.seed(seed)
    rng = np.random.default_rng(0)
    taken = [environment.reset()]
    taken += [
        environment.step(rng.integers(environment.action_spec().num_values))
        for _ in range(steps)
    ]
    return [(float(t.reward), int(t.observation.sum(dtype=np.int64))) for t in taken]


def test_specs_stay_uint8():
    environment = suite_atari.load("PongNoFrameskip-v4")
    spec = environment.observation_spec()
    assert (spec.shape, spec.dtype) == ((84, 84, 1), np.uint8)
    assert (spec.minimum, spec.maximum) == (0, 255)
    assert environment.action_spec().num_values == 6
    time_step = environment.reset()
    assert time_step.observation.dtype == np.uint8


def test_a_game_needs_its_extra(monkeypatch):
    monkeypatch.setattr(extras, "is_installed", lambda *modules: False)
    with pytest.raises(ImportError, match=r"pip install 'tfrl\[atari\]'"):
        suite_atari.check_game("ALE/Pong-v5")


def test_stacking():
    environment = suite_atari.load(
        "PongNoFrameskip-v4",
        gym_env_wrappers=suite_atari.DEFAULT_ATARI_GYM_WRAPPERS_WITH_STACKING,
    )
    spec = environment.observation_spec()
    assert (spec.shape, spec.dtype) == ((84, 84, 4), np.uint8)
    environment.reset()
    before = environment.step(np.array(2)).observation
    after = environment.step(np.array(2)).observation
    np.testing.assert_array_equal(after[..., :3], before[..., 1:])


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({}, "PongNoFrameskip-v0"),
        ({"name": "Qbert", "mode": "", "version": "v4"}, "Qbert-v4"),
        ({"obs_type": "ram", "mode": "Deterministic"}, "Pong-ramDeterministic-v0"),
    ],
)
def test_game_makes_tf_agents_names(arguments, name):
    assert suite_atari.game(**arguments) == name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"obs_type": "rgb"},
            r"obs_type: got 'rgb', expected one of \('image', 'ram'\)",
        ),
        ({"mode": "Fast"}, "mode: got 'Fast', expected one of"),
        ({"version": "v5"}, "version: got 'v5'.*'ALE/Pong-v5'"),
    ],
)
def test_game_refuses_what_there_is_not(arguments, message):
    with pytest.raises(ValueError, match=message):
        suite_atari.game(**arguments)


@pytest.mark.parametrize(
    ("name", "frameskip", "sticky", "shape"),
    [
        ("PongNoFrameskip-v0", 1, 0.25, (210, 160, 3)),
        ("PongNoFrameskip-v4", 1, 0.0, (210, 160, 3)),
        ("Pong-v0", (2, 5), 0.25, (210, 160, 3)),
        ("PongDeterministic-v4", 4, 0.0, (210, 160, 3)),
        ("SpaceInvadersDeterministic-v0", 3, 0.25, (210, 160, 3)),
        ("Pong-ram-v4", (2, 5), 0.0, (128,)),
        ("Pong-ramNoFrameskip-v0", 1, 0.25, (128,)),
        ("Pong-ramDeterministic-v0", 4, 0.25, (128,)),
        ("ALE/Pong-v5", 4, 0.25, (210, 160, 3)),
    ],
)
def test_names_say_how_frames_are_skipped_and_actions_stick(
    name, frameskip, sticky, shape
):
    environment = suite_atari.load(name, gym_env_wrappers=())
    unwrapped = environment.unwrapped
    assert unwrapped._frameskip == frameskip
    assert unwrapped.ale.getFloat("repeat_action_probability") == sticky
    assert environment.observation_spec().shape == shape
    assert environment.observation_spec().dtype == np.uint8


def test_v5_is_preprocessed_without_skipping_twice():
    environment = suite_atari.load("ALE/Pong-v5")
    environment.reset()
    environment.step(np.array(0))
    assert environment.get_info()["episode_frame_number"] == 4
    assert environment.ale.getFloat("repeat_action_probability") == 0.25


def test_wrappers_may_be_partial():
    environment = suite_atari.load(
        "ALE/Breakout-v5",
        gym_env_wrappers=[
            functools.partial(AtariPreprocessing, frame_skip=2, screen_size=42),
            atari_wrappers.FireOnReset,
        ],
    )
    assert environment.observation_spec().shape == (42, 42, 1)
    environment.reset()
    assert environment.get_info()["episode_frame_number"] == 4


def test_gym_kwargs_reach_the_game():
    environment = suite_atari.load(
        "ALE/Pong-v5",
        gym_kwargs={"full_action_space": True, "repeat_action_probability": 0.0},
    )
    assert environment.action_spec().num_values == 18
    assert environment.ale.getFloat("repeat_action_probability") == 0


def test_max_episode_steps_truncates_with_the_discount():
    environment = suite_atari.load(
        "PongNoFrameskip-v4", discount=0.9, max_episode_steps=3
    )
    assert isinstance(environment, atari_wrappers.AtariTimeLimit)
    environment.reset()
    steps = [environment.step(np.array(0)) for _ in range(4)]
    assert [int(step.step_type) for step in steps] == [1, 1, 2, 0]
    assert [float(step.discount) for step in steps] == pytest.approx(
        [0.9] * 3 + [1], rel=1e-6
    )
    assert environment.get_info()["episode_frame_number"] == 0


def test_the_limit_may_be_a_float_as_frames_by_frame_skip_are():
    environment = suite_atari.load("PongNoFrameskip-v4", max_episode_steps=8 / 4)
    environment.reset()
    assert [environment.step(np.array(0)).is_last() for _ in range(2)] == [False, True]


def test_the_limit_of_the_console_is_a_truncation():
    environment = suite_atari.load(
        "PongNoFrameskip-v4", gym_kwargs={"max_num_frames_per_episode": 12}
    )
    environment.reset()
    steps = [environment.step(np.array(0)) for _ in range(4)]
    assert [int(step.step_type) for step in steps] == [1, 1, 2, 0]
    assert float(steps[2].discount) == 1


def test_lives_end_episodes_and_the_game_continues():
    environment = suite_atari.load(
        "BreakoutNoFrameskip-v4",
        max_episode_steps=1000,
        gym_env_wrappers=[
            functools.partial(AtariPreprocessing, terminal_on_life_loss=True)
        ],
        env_wrappers=[wrappers.RunStats],
    )
    environment.seed(0)
    environment.reset()
    lives = []
    for _ in range(400):
        time_step = environment.step(np.array(1))
        if time_step.is_last():
            assert time_step.discount == 0
            lives.append(environment.get_info()["lives"])
            first = environment.step(np.array(1))
            assert first.is_first()
            assert environment.get_info()["lives"] == (lives[-1] or 5)
        if len(lives) == 6:
            break
    assert lives == [4, 3, 2, 1, 0, 4]


def test_the_same_seed_is_the_same_run():
    runs = [run(suite_atari.load("ALE/Breakout-v5"), seed) for seed in (3, 3, 4)]
    assert runs[0] == runs[1]
    # Sticky actions differ.
    assert runs[0] != runs[2]


def test_renders_in_colour():
    environment = suite_atari.load("PongNoFrameskip-v4")
    environment.reset()
    picture = environment.render()
    assert (picture.shape, picture.dtype) == ((210, 160, 3), np.uint8)
    assert np.any(picture[..., 0] != picture[..., 1])


def test_a_game_conforms():
    environment = suite_atari.load("PongNoFrameskip-v4", max_episode_steps=20)
    utils.validate_py_environment(environment, episodes=2)


def test_in_the_graph():
    environment = tf_py_environment.TFPyEnvironment(
        suite_atari.load("PongNoFrameskip-v4")
    )
    environment.reset()

    @tf.function
    def step():
        return environment.step(tf.zeros([1], tf.int64))

    time_step = step()
    assert time_step.observation.dtype == tf.uint8
    assert time_step.observation.shape == (1, 84, 84, 1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("PongNoFrameskp-v4", "did you mean PongNoFrameskip-v4"),
        ("ALE/Pomg-v5", "did you mean ALE/Pong-v5"),
        ("Pong-ram-v4", r"env: got the observation space.*gym_env_wrappers=\(\)"),
        ("PongDeterministic-v4", "env: got a game that repeats actions for 4 frames"),
    ],
)
def test_what_cannot_be_loaded_is_an_error(name, message):
    with pytest.raises(ValueError, match=message):
        suite_atari.load(name)


@pytest.mark.parametrize("name", ["Breakout-v4", "Pong-v0"])
def test_preprocessing_alone_repeats_the_actions_of_old_games(name):
    environment = suite_atari.load(name)
    assert environment.unwrapped._frameskip == 1
    assert environment.reset().observation.shape == (84, 84, 1)


def test_registered_limits_are_ours():
    gymnasium.register(
        "LimitedPong-v0",
        entry_point="ale_py.env:AtariEnv",
        kwargs={"game": "pong", "frameskip": 1},
        max_episode_steps=7,
    )
    try:
        environment = suite_atari.load("LimitedPong-v0")
        assert environment.duration == 7
    finally:
        del gymnasium.registry["LimitedPong-v0"]


def test_suites_import_without_tensorflow_and_without_their_extras():
    code = (
        "import sys\n"
        "for name in ('ale_py', 'cv2', 'mujoco', 'dm_control', 'bsuite', 'envpool'):\n"
        "    sys.modules[name] = None\n"
        "from tfrl.environments import suite_atari, suite_mujoco, suite_dm_control\n"
        "from tfrl.environments import suite_bsuite, suite_pybullet, suite_gym\n"
        "from tfrl.environments import suite_envpool\n"
        "assert not suite_atari.is_available()\n"
        "suite_gym.load('CartPole-v1').reset()\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_several_games_run_in_processes(capfd):
    with suite_atari.load_batch(
        "ALE/Pong-v5", 2, max_episode_steps=3, emulator="gymnasium"
    ) as environment:
        assert isinstance(environment, parallel_py_environment.ParallelPyEnvironment)
        environment.seed(0)
        assert environment.reset().observation.shape == (2, 84, 84, 4)
        types = [environment.step(np.zeros(2, int)).step_type[1] for _ in range(4)]
        assert types == [1, 1, 2, 0]
    assert "WARN" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("ALE/Pong-v5", {"emulator": "mame"}, "emulator: got 'mame', expected one of"),
        ("ALE/Pong-v5", {"emulator": "envpool"}, "suite_envpool loads the games of E"),
        ("ALE/Pong-v5", {"num_envs": 0}, r"num_envs: .* got 0"),
        ("ALE/Pomg-v5", {}, "did you mean ALE/Pong-v5"),
        ("PongDeterministic-v4", {}, "env: got a game that repeats actions for 4 fra"),
        ("ALE/Pong-v5", {"noop_max": -1}, r"noop_max: .* got -1"),
    ],
)
def test_a_batch_that_cannot_be_loaded_is_an_error(name, kwargs, message):
    with pytest.raises(ValueError, match=message):
        suite_atari.load_batch(name, **{"num_envs": 2, **kwargs})


def test_names_of_games():
    games = ["ALE/Pong-v5", "PongNoFrameskip-v4", "SpaceInvadersNoFrameskip-v0"]
    assert all(map(suite_atari.is_game, games))
    assert not any(map(suite_atari.is_game, ["CartPole-v1", "Pong-v4", "Ant-v4"]))
