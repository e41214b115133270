import pathlib
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from tfrl.environments import suite_mujoco, tf_py_environment, utils, wrappers

REPOSITORY = pathlib.Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    """MuJoCo writes its warnings to a file in the working directory."""
    monkeypatch.chdir(tmp_path)


def run(environment, seed, steps=30):
    environment.seed(seed)
    rng = np.random.default_rng(0)
    environment.reset()
    actions = rng.uniform(-1, 1, (steps, 6)).astype(np.float32)
    return [float(environment.step(action).reward) for action in actions]


def test_observations_are_float32():
    environment = suite_mujoco.load("HalfCheetah-v5")
    spec = environment.time_step_spec()
    assert (spec.observation.shape, spec.observation.dtype) == ((17,), np.float32)
    assert environment.action_spec().shape == (6,)
    assert environment.reset().observation.dtype == np.float32
    assert isinstance(environment, wrappers.TimeLimit)
    assert environment.duration == 1000


def test_numbers_are_gymnasiums():
    environment = suite_mujoco.load("Hopper-v5")
    plain = gymnasium.make("Hopper-v5")
    environment.seed(5)
    first, _ = plain.reset(seed=5)
    np.testing.assert_array_equal(
        environment.reset().observation, first.astype(np.float32)
    )
    action = np.array([0.1, -0.2, 0.3], np.float32)
    observation, reward, *_ = plain.step(action)
    time_step = environment.step(action)
    np.testing.assert_array_equal(time_step.observation, observation.astype(np.float32))
    assert time_step.reward == np.float32(reward)


@pytest.mark.parametrize(
    ("old", "loaded"),
    [
        ("HalfCheetah-v2", "HalfCheetah-v4"),
        ("Humanoid-v3", "Humanoid-v4"),
        ("Pusher-v2", "Pusher-v5"),
    ],
)
def test_old_versions_load_the_nearest_that_runs(old, loaded, monkeypatch):
    # As Gymnasium-Robotics does, for mujoco-py, in a process that imports it.
    older = gymnasium.envs.registration.EnvSpec(old, entry_point="robotics:Env")
    monkeypatch.setitem(gymnasium.registry, old, older)
    with pytest.warns(UserWarning, match=rf"got '{old}'.*loading '{loaded}'.*-v5'"):
        environment = suite_mujoco.load(old)
    assert environment.gym.spec.id == loaded


def test_todays_versions_load_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        suite_mujoco.load("Swimmer-v5")


def test_the_same_seed_is_the_same_run():
    runs = [run(suite_mujoco.load("HalfCheetah-v5"), seed) for seed in (3, 3, 4)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_arguments_reach_the_task():
    environment = suite_mujoco.load(
        "HalfCheetah-v5",
        discount=0.5,
        max_episode_steps=2,
        env_wrappers=[wrappers.RunStats],
        gym_kwargs={"ctrl_cost_weight": 0.0},
        spec_dtype_map={gymnasium.spaces.Box: np.float64},
    )
    assert environment.observation_spec().dtype == np.float64
    assert environment.unwrapped._ctrl_cost_weight == 0.0
    utils.validate_py_environment(environment, episodes=1)
    assert environment.episodes == 1
    environment.reset()
    assert environment.step(np.zeros(6)).discount == 0.5


def test_draws_without_a_display():
    environment = suite_mujoco.load(
        "InvertedPendulum-v5", render_kwargs={"width": 64, "height": 48}
    )
    environment.reset()
    picture = environment.render()
    environment.close()
    assert (picture.shape, picture.dtype) == ((48, 64, 3), np.uint8)
    assert picture.std() > 0


@pytest.mark.slow  # A process imports TensorFlow.
def test_draws_beside_tensorflow_and_with_suite_gym():
    # TensorFlow first: its LLVM must not be taken for the one that draws in software.
    code = (
        "import os\n"
        "for name in ('DISPLAY', 'WAYLAND_DISPLAY', 'MUJOCO_GL'):\n"
        "    os.environ.pop(name, None)\n"
        "import tensorflow\n"
        "from tfrl.environments import suite_gym\n"
        "environment = suite_gym.load('InvertedPendulum-v5', gym_kwargs=dict(\n"
        "    width=32, height=32))\n"
        "environment.reset()\n"
        "print('drawn', environment.render().std() > 0)\n"
        "environment.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
    )
    assert "drawn True" in done.stdout


def test_in_the_graph():
    environment = tf_py_environment.TFPyEnvironment(suite_mujoco.load("Swimmer-v5"))
    environment.reset()
    time_step = tf.function(environment.step)(tf.zeros([1, 2]))
    assert time_step.observation.dtype == tf.float32
    assert time_step.observation.shape == (1, 8)


def test_an_unknown_task_is_an_error():
    with pytest.raises(ValueError, match="did you mean HalfCheetah-v5"):
        suite_mujoco.load("HalfCheeta-v5")


@pytest.mark.parametrize(
    "name",
    [
        "HalfCheetah-v5",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("Ant-v5", "Swimmer-v5", "Hopper-v5")
        ),
    ],
)
def test_the_camera_follows_the_body(name):
    environment = suite_mujoco.load(name)
    environment.reset()
    task = environment.gym.unwrapped

    def num_pixels_of_the_body():
        """Counts what is reddish or yellowish, unlike floor and sky."""
        picture = environment.render().astype(int)
        return np.sum(picture[..., 0] - picture[..., 2] > 40)

    at_the_start = num_pixels_of_the_body()
    position = task.data.qpos.copy()
    position[0] += 50.0  # Metres.
    task.set_state(position, task.data.qvel)
    assert num_pixels_of_the_body() > at_the_start / 2 > 100
    environment.close()
