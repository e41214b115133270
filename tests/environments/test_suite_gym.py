import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest

from tfrl.environments import extras, gymnasium_wrapper, suite_gym, wrappers


def episode_length(environment):
    """Plays alternating actions, which hold a pole for a while, up to 60 steps."""
    environment.seed(0)
    environment.reset()
    for length in range(1, 60):
        if environment.step(np.array(length % 2)).is_last():
            return length
    return None


def test_specs_of_cartpole():
    environment = suite_gym.load("CartPole-v0")
    spec = environment.time_step_spec()
    assert environment.action_spec().dtype == np.int64
    assert (environment.action_spec().minimum, environment.action_spec().maximum) == (
        0,
        1,
    )
    np.testing.assert_allclose(
        spec.observation.maximum,
        [4.8, np.finfo(np.float32).max, 0.41887903, np.finfo(np.float32).max],
        rtol=1e-6,
    )
    assert spec.observation.name == "observation"


def test_an_outdated_version_loads_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        environment = suite_gym.load("CartPole-v0")
    assert environment.duration == 200


def test_time_limit_is_ours_and_only_ours():
    environment = suite_gym.load("CartPole-v1")
    assert isinstance(environment, wrappers.TimeLimit)
    gym_env = environment.gym
    while isinstance(gym_env, gymnasium.Wrapper):
        assert not isinstance(gym_env, gymnasium.wrappers.TimeLimit)
        gym_env = gym_env.env


def test_time_limit_keeps_the_discount():
    environment = suite_gym.load("Pendulum-v1", discount=0.9, max_episode_steps=3)
    environment.reset()
    steps = [environment.step(np.zeros(1, np.float32)) for _ in range(4)]
    assert [int(step.step_type) for step in steps] == [1, 1, 2, 0]
    assert [float(step.discount) for step in steps] == pytest.approx(
        [0.9] * 3 + [1.0], rel=1e-6
    )


def test_max_episode_steps_shortens_lengthens_and_removes_the_limit():
    assert episode_length(suite_gym.load("CartPole-v1", max_episode_steps=5)) == 5
    longer = suite_gym.load("Pendulum-v1", max_episode_steps=300)
    longer.reset()
    ends = [longer.step(np.zeros(1, np.float32)).is_last() for _ in range(300)]
    assert ends == [False] * 299 + [True]
    unlimited = suite_gym.load("CartPole-v1", max_episode_steps=0)
    assert isinstance(unlimited, gymnasium_wrapper.GymnasiumWrapper)
    with pytest.raises(ValueError, match=r"duration: .* got -1"):
        suite_gym.load("CartPole-v1", max_episode_steps=-1)


def test_wrappers_are_applied_in_order():
    environment = suite_gym.load(
        "CartPole-v1",
        gym_env_wrappers=[
            lambda env: gymnasium.wrappers.TransformReward(env, lambda r: 2)
        ],
        env_wrappers=[wrappers.RunStats, wrappers.ActionOffsetWrapper],
    )
    assert isinstance(environment, wrappers.ActionOffsetWrapper)
    assert isinstance(environment.wrapped_env(), wrappers.RunStats)
    environment.reset()
    assert environment.step(np.array(0)).reward == 2.0
    assert environment.total_steps == 1


def test_renders_pictures_unless_told_otherwise():
    environment = suite_gym.load("CartPole-v1")
    environment.reset()
    picture = environment.render()
    assert (picture.shape, picture.dtype) == ((400, 600, 3), np.uint8)
    silent = suite_gym.load("CartPole-v1", gym_kwargs={"render_mode": None})
    assert silent.gym.render_mode is None


def test_gym_kwargs_reach_the_constructor():
    environment = suite_gym.load("Pendulum-v1", gym_kwargs={"g": 1.5})
    assert environment.unwrapped.g == 1.5


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("CartPol-v1", "did you mean CartPole-v1"),
        ("Xyzzyq-v4", "suite_atari, or as 'ale_py:Xyzzyq-v4', with the extra: pip"),
        ("cartpole-v1", "did you mean CartPole-v1"),
        ("Pendulum-v0", "did you mean Pendulum-v1"),
        ("Xyzzy-v7", r"gymnasium.pprint_registry\(\)"),
        ("highway-v0", "write 'module:highway-v0'"),
        ("dm_control/cartpole-balance-v1", "write dm_control/cartpole-balance.$"),
        ("dm_control/cartpole", "write dm_control/cartpole-balance, for example"),
        ("no spaces allowed", r"gymnasium.pprint_registry\(\)"),
    ],
)
def test_unknown_environment_is_one_clear_error(name, suggestion):
    with pytest.raises(
        ValueError, match=f"environment_name: got '{name}'.*{suggestion}"
    ):
        suite_gym.load(name)


def test_an_environment_of_an_extra_names_the_extra(monkeypatch):
    monkeypatch.setattr(extras, "is_installed", lambda module: module != "Box2D")
    with pytest.raises(ImportError) as raised:
        suite_gym.load("LunarLander-v3")
    assert str(raised.value) == (
        "LunarLander-v3: got no module 'Box2D', expected the packages the suite needs; "
        "install them with: pip install 'tfrl[box2d]'"
    )


def test_a_game_of_atari_names_its_loader_and_extra(monkeypatch):
    registry = {
        key: spec
        for key, spec in gymnasium.registry.items()
        if not key.startswith("ALE/")
    }
    monkeypatch.setattr(gymnasium, "registry", registry)
    with pytest.raises(ValueError, match=r"suite_atari, .* install 'tfrl\[atari\]'"):
        suite_gym.load("ALE/Pong-v5")


def test_unknown_module_is_an_error():
    with pytest.raises(ValueError, match=r"got 'no_such_module:X-v0'.*install"):
        suite_gym.load("no_such_module:X-v0")


def test_name_without_version_is_the_newest():
    suite_gym._say_version.cache_clear()
    with pytest.warns(UserWarning, match=r"'CartPole', .* the newest one, CartPole-v1"):
        assert suite_gym.find_spec("CartPole").id == "CartPole-v1"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # It is said once.
        assert suite_gym.find_spec("CartPole").id == "CartPole-v1"


def test_name_with_a_module_imports_it():
    assert suite_gym.find_spec("gymnasium:CartPole-v1").id == "CartPole-v1"


def test_entry_point_that_takes_no_render_mode_gets_none():
    gymnasium.register("Bare-v0", entry_point=lambda: gymnasium.make("CartPole-v1"))
    try:
        assert suite_gym.load("Bare-v0").gym.render_mode is None
    finally:
        del gymnasium.registry["Bare-v0"]


def test_python_environments_import_without_tensorflow():
    code = (
        "import sys\n"
        "from tfrl.environments import py_environment, wrappers\n"
        "from tfrl.environments.gymnasium import vector_py_environment\n"
        "from tfrl.environments import gymnasium_wrapper\n"
        "from tfrl.environments import dm_env_wrapper\n"
        "from tfrl.environments import py_to_dm_wrapper, suite_gym, test_envs\n"
        "from tfrl.environments import random_py_environment\n"
        "for name in wrappers.__all__:\n"
        "    if name not in ('numpy_state', 'NumpyStateWrapper'):\n"
        "        getattr(wrappers, name)\n"
        "environment = suite_gym.load('CartPole-v1')\n"
        "environment.reset(); environment.step(0)\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(not extras.is_installed("minigrid"), reason="needs tfrl[minigrid]")
def test_grids_are_registered_when_one_is_loaded():
    """In a process of its own, which has not imported minigrid."""
    code = (
        "from tfrl.environments import suite_gym\n"
        "spec = suite_gym.find_spec('MiniGrid-DoorKey-5x5-v0')\n"
        "assert spec.entry_point == 'minigrid.envs:DoorKeyEnv', spec\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_grids_without_their_extra_name_it(monkeypatch):
    monkeypatch.setattr(extras, "is_installed", lambda *modules: False)
    with pytest.raises(ImportError, match=r"tfrl\[minigrid\]"):
        suite_gym.load("MiniGrid-Nothing-v0")


def test_robotics_without_its_extra_names_it(monkeypatch):
    monkeypatch.setattr(extras, "is_installed", lambda *modules: False)
    with pytest.raises(ImportError, match=r"tfrl\[robotics\]"):
        suite_gym.load("FetchNothing-v0")
    entry_point = "gymnasium.envs.classic_control:CartPoleEnv"
    own = gymnasium.envs.registration.EnvSpec("FetchOwn-v0", entry_point=entry_point)
    monkeypatch.setitem(gymnasium.registry, own.id, own)
    assert suite_gym.find_spec(own.id) is own


@pytest.mark.skipif(
    not extras.is_installed("gymnasium_robotics"), reason="needs tfrl[robotics]"
)
def test_fetch_reach_has_goals_and_their_rewards():
    environment = suite_gym.load("FetchReach-v4")
    environment.seed(0)
    assert environment.duration == 50
    step = environment.reset()
    assert sorted(step.observation) == ["achieved_goal", "desired_goal", "observation"]
    for _ in range(3):
        step = environment.step(np.ones(4, np.float32))
    goals = step.observation["achieved_goal"], step.observation["desired_goal"]
    assert environment.gym.unwrapped.compute_reward(*goals, {}) == step.reward


@pytest.mark.parametrize(("limit", "found"), [(None, 500), (70, 70)])
def test_wrappers_of_gymnasium_know_the_time_limit(limit, found):
    environment = suite_gym.load(
        "CartPole-v1",
        max_episode_steps=limit,
        gym_env_wrappers=[gymnasium.wrappers.TimeAwareObservation],
    )
    assert environment.observation_spec().shape == (5,)
    assert environment.gym.spec.max_episode_steps == found
    assert gymnasium.spec("CartPole-v1").max_episode_steps == 500


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
    with suite_gym.model_warnings_omitted(CHEETAH):
        tell = mujoco.get_mju_user_warning()
        with pytest.warns(RuntimeWarning, match="MuJoCo: Nan in QACC"):
            tell("Nan in QACC")


def test_a_handler_of_the_user_stays():
    told = []
    mujoco.set_mju_user_warning(told.append)
    with suite_gym.model_warnings_omitted(CHEETAH):
        mujoco.get_mju_user_warning()("deprecated")
    assert told == ["deprecated"]


def test_other_environments_are_left_alone():
    with suite_gym.model_warnings_omitted(gymnasium.spec("CartPole-v1")):
        assert mujoco.get_mju_user_warning() is None
