"""The suites that names belong to, and a suite that a user adds."""

import functools
import json
import os
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

import tfrl
from tests.environments.endless import Endless, limited
from tests.forks import REPOSITORY
from tfrl.algorithms import recipe, worlds
from tfrl.environments import native, suites
from tfrl.utils import number_checks

MODULE = """
import gymnasium
from tests.environments.endless import limited
from tfrl.environments import suites
from tfrl.utils import number_checks


def at_least_1(name, value, *, remedy):
    number_checks.check_integer(name, value, minimum=1, remedy=remedy)


def check(name):
    if name != "mysuite/short":
        raise ValueError(f"env: got {name!r}, expected mysuite/short.")
    return gymnasium.spaces.Discrete(2)


suites.add(
    suites.Suite(
        matches=lambda name: name.startswith("mysuite/"),
        load=lambda name, limit: limited(limit),
        check=check,
        options={"limit": suites.Option("Steps.", at_least_1, 9)},
    )
)
"""


@pytest.fixture
def add(monkeypatch):
    """Adds a suite for a test."""
    monkeypatch.setattr(suites, "_added", [])
    yield suites.add
    suites.kind_of.cache_clear()


def is_own(name):
    return name.startswith("mysuite/")


@pytest.mark.parametrize(
    "name", ["BitFlipping5-v0", "BitFlippingToOnes12-v0", "BitFlipping0-v0", "Bits-v0"]
)
def test_the_row_of_bit_flipping_has_the_names_that_it_knows(name):
    suite, own = suites.find(name)
    assert own == name
    assert suite.is_native == native.bit_flipping.is_task(name)


def test_the_error_for_a_misspelt_name_suggests_names_of_added_suites(add):
    add(suites.Suite(matches=lambda _: False, names=lambda: ["mysuite/short"]))
    with pytest.raises(ValueError, match="did you mean mysuite/short"):
        suites.find_action_space("mysuit/shrt")


def test_names_say_which_elements_are_left():
    for name, positions in {"CartPoleNoVel-v1": 2, "MountainCarNoVel-v0": 1}.items():
        spec = worlds.make_environment(name, 1, 0).observation_spec()
        assert spec.shape == [positions]
    assert suites.find_action_space("CartPoleNoVel-v1") == gymnasium.spaces.Discrete(2)
    for name in ("CartPoleNovel-v1", "HopperNoVel-v5"):
        with pytest.raises(ValueError, match="registered with Gymnasium"):
            suites.find_action_space(name)


def test_positions_are_observed_by_one_environment_and_by_several():
    for num_envs in (1, 2):
        plain = worlds.make_environment("Pendulum-v1", num_envs, 3)
        bare = worlds.make_environment("PendulumNoVel-v1", num_envs, 3)
        assert bare.observation_spec().shape == [2]
        action = np.zeros([num_envs, 1], np.float32)
        for environment in (plain, bare):
            environment.reset()
        np.testing.assert_array_equal(
            bare.step(action).observation, plain.step(action).observation[:, :2]
        )


def test_actors_play_no_game():
    suites.check_actors("CartPole-v1")
    with pytest.raises(ValueError, match="got 'ALE/Pong-v5', an Atari game, which"):
        suites.check_actors("ALE/Pong-v5")


def test_dynamics_are_found_of_names_and_of_environments():
    for given in ("CartPole-v1", native.load("CartPole-v1")):
        assert suites.find_dynamics(given) is native.load("CartPole-v1").dynamics
        assert suites.find_dynamics(suites.find_dynamics(given)) is not None
    for given in ("CartPoleNoVel-v1", "CliffWalking-v1", Endless, Endless()):
        assert suites.find_dynamics(given) is None
    assert suites.find_dynamics("Pendulum-v1", 5).action_spec.maximum == 4


def test_a_class_trains_and_evaluates_in_a_suite_that_a_user_adds(add):
    made = []

    def make(name):
        made.append(name)
        return limited(9)

    add(suites.Suite(matches=is_own, load=make))
    algorithm = tfrl.DQN(
        "mysuite/short",
        num_envs=2,
        fc_layer_params=(4,),
        jit_compile=False,
        initial_collect_steps=16,
        batch_size=8,
    )
    algorithm.learn(20, progress=False)
    assert algorithm.evaluate(3).lengths.tolist() == [9, 9, 9]
    assert made == ["mysuite/short"] * len(made)
    world = algorithm.world
    assert world.has_time_limit(world.make_evaluation(1, 0))
    assert world.make_film() is None  # It renders no pictures.
    assert world.facts()["time_limit"] == 9


fast = suites.Option(
    "How fast.",
    functools.partial(number_checks.check_choice, choices=("slow", "fast")),
    "slow",
)


def test_a_suite_makes_a_batch_with_options_of_its_own_that_is_filmed(add):
    given = []

    def load_batch(name, num_envs, **options):
        given.append((name, num_envs, options))
        member = [tfrl.environments.suite_gym.wrap_env(Endless())]
        return tfrl.environments.BatchedPyEnvironment(member * num_envs)

    size = functools.partial(number_checks.check_integer, minimum=1)
    options = {"size": suites.Option("Size.", size, 5), "speed": fast}
    own = {"load_batch": load_batch, "options": options, "films": True}
    add(suites.Suite(matches=is_own, **own))
    algorithm = tfrl.DQN("mysuite/a", num_envs=3, size=7, speed="slow")
    assert algorithm.options == {"size": 7}
    assert algorithm.environment.batch_size == 3
    made = {"is_training": True, "size": 7, "speed": "slow"}
    assert given == [("mysuite/a", 3, made)]
    assert algorithm.world.make_film() is not None
    assert given[-1][2] == {**made, "is_training": False}
    again = recipe.Recipe.from_json(recipe.Recipe.of_algorithm(algorithm).to_json())
    assert again.make().options == {"size": 7}
    with pytest.raises(ValueError, match=r"^size: expected an integer .*, got 0; set"):
        tfrl.DQN("mysuite/a", size=0)
    with pytest.raises(
        ValueError, match=r"^speed: expected one of 'slow', 'fast', got"
    ):
        tfrl.DQN("mysuite/a", speed="none")


@pytest.mark.parametrize("name", ["mysuite/short", ""])
def test_actions_are_repeated_in_suites_of_single_environments(add, name):
    add(suites.Suite(matches=is_own, load=lambda _: limited(9)))
    algorithm = tfrl.PPO(
        name or functools.partial(limited, 9), action_repeat=2, num_envs=2
    )
    assert algorithm.evaluate(3).lengths.tolist() == [5, 5, 5]  # Of 9 steps.
    assert algorithm.world.facts()["time_limit"] == 5


@pytest.mark.parametrize("given", ["Hopper-v5", "CartPole-v1", Endless()])
def test_other_actions_are_not_repeated(given):
    with pytest.raises(
        ValueError,
        match=r"action_repeat: got 2 for .*, expected 1, or an environment that has "
        r"this option\. Steps per action; for dm_control, bsuite and functions",
    ):
        tfrl.PPO(given, action_repeat=2).build()
    tfrl.PPO(given, action_repeat=1).build()


def test_a_suite_of_dynamics_is_trained_in_by_one_program(add):
    dynamics = native.load("CartPole-v1").dynamics
    add(suites.Suite(matches=is_own, dynamics=lambda name: dynamics))
    algorithm = tfrl.DQN("mysuite/pole", num_envs=4)
    assert isinstance(algorithm.environment, native.NativeEnvironment)
    assert algorithm.environment.dynamics is dynamics
    assert suites.find_dynamics("mysuite/pole") is dynamics


def test_the_last_suite_that_was_added_comes_first(add):
    assert suites.kind_of("CartPole-v1") is None

    class Pictures(Endless):
        observation_space = gymnasium.spaces.Box(0, 255, (40, 40, 3), np.uint8)

    for make in (Endless, Pictures):
        add(suites.Suite(matches=lambda _: True, load=lambda _, make=make: make()))
    assert suites.kind_of("CartPole-v1") == "pictures"
    assert suites.find("ALE/Pong-v5")[0].load is not None


def test_the_kind_of_a_task_of_dm_control_needs_no_environment():
    # Its module would import TensorFlow, which reads environment variables.
    code = """
import sys
import tfrl
tfrl.PPO("dm_control/cartpole-balance")
assert "dm_control" not in sys.modules and "tensorflow" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)


def test_a_module_before_a_colon_adds_its_suite(add, tmp_path, monkeypatch):
    (tmp_path / "suite_for_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    assert suites.find_action_space("suite_for_a_test:mysuite/short").n == 2
    suite, name = suites.find("suite_for_a_test:mysuite/short")
    assert (len(suites._added), name) == (1, "mysuite/short")
    assert suite is suites._added[0]


@pytest.fixture
def package(tmp_path):
    """A folder with an installed package that has a suite."""
    (tmp_path / "mysuite.py").write_text(MODULE)
    info = tmp_path / "mysuite-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mysuite\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[tfrl.suites]\nmysuite = mysuite\n")
    return tmp_path


def run(package, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "tfrl", "train", *arguments],
        cwd=package,
        env={**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{REPOSITORY}"},
        capture_output=True,
        text=True,
    )


def test_the_command_checks_a_name_of_an_installed_suite(package):
    wrong = run(package, "ppo", "--env=mysuite/tusk")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "got 'mysuite/tusk', expected mysuite/short." in wrong.stderr
    discrete = run(package, "sac", "--env=mysuite/short")
    assert "whose actions are discrete, but SAC" in discrete.stderr
    limit = run(package, "ppo", "--env=mysuite/short", "--limit=0")
    assert "limit: expected an integer of at least 1, got 0; set --limit." in (
        limit.stderr
    )
    for_another = run(package, "ppo", "--limit=4")
    assert "--limit: unknown flag" in for_another.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mysuite/short", "mysuite:mysuite/short"])
def test_the_command_trains_in_an_installed_suite(package, name):
    words = "ppo", f"--env={name}", "--limit=4", "--num_iterations=1", "--logdir=run"
    done = run(package, *words)
    assert done.returncode == 0, done.stderr
    fields = json.loads((package / "run" / "config.json").read_text())
    assert fields["env_options"] == {"limit": 4}
    assert run(package, *words).returncode == 0  # It resumes.
    assert (package / "run" / "policy" / "saved_model.pb").exists()
    assert (package / "run" / "final_policy").exists()


def test_a_module_of_a_suite_before_a_name_changes_nothing():
    pytest.importorskip("minigrid")
    name = "MiniGrid-Empty-5x5-v0"
    suite, own = suites.find(f"minigrid:{name}")
    assert (suite, own) == suites.find(name)


def test_a_class_that_needs_a_configuration_is_refused_by_its_arguments():
    class Mine(gymnasium.Env):
        def __init__(self, env_config, *, size, render_mode=None, **others):
            pass

    with pytest.raises(TypeError, match=r"got Mine, which needs env_config, size, .*"):
        suites.call(Mine)
    with pytest.raises(TypeError, match=r"write lambda: Mine\(\.\.\.\) with the val"):
        tfrl.PPO(Mine)
    assert suites.call(lambda *_, size=3, **__: size) == 3
    assert suites.call(dict) == {}
