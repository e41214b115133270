import subprocess
import sys
import types

import numpy as np
import pytest
import tensorflow as tf
from absl import logging as absl_logging

import tfrl
from tfrl import eval as evaluation
from tfrl.algorithms import worlds
from tfrl.command import saved_policy
from tfrl.environments import (
    dm_control_wrapper,
    py_environment,
    suite_dm_control,
    suites,
    tf_py_environment,
    time_limits,
    utils,
    wrappers,
)

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 13),
    reason="dm-control needs labmaze, which has no wheel for Python 3.13",
)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    """MuJoCo writes its warnings to a file in the working directory."""
    monkeypatch.chdir(tmp_path)


SMALL = {"height": 24, "width": 32, "camera_id": 0}


def run(environment, steps=20):
    rng = np.random.default_rng(0)
    taken = [environment.reset()]
    taken += [environment.step(rng.uniform(-1, 1, 1)) for _ in range(steps)]
    return [t.observation["position"].tolist() for t in taken]


def test_specs_are_float32():
    environment = suite_dm_control.load("cartpole", "swingup")
    spec = environment.observation_spec()
    assert {key: (leaf.shape, leaf.dtype) for key, leaf in spec.items()} == {
        "position": ((3,), np.float32),
        "velocity": ((2,), np.float32),
    }
    action_spec = environment.action_spec()
    assert (action_spec.dtype, action_spec.minimum, action_spec.maximum) == (
        np.float32,
        -1,
        1,
    )


@pytest.mark.slow
def test_tensorflow_can_be_imported_after_the_check_of_a_name(monkeypatch):
    # With Mesa's drivers loaded first, its import was a segmentation fault.
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"):
        monkeypatch.delenv(name, raising=False)
    code = """
from tfrl.environments import suite_dm_control
suite_dm_control.check_task("dm_control/cartpole-balance")
import tensorflow as tf
tf.zeros(1)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow  # A program of its own.
def test_programs_are_compiled_with_a_function_that_imports_dm_control(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "egl")
    code = """
from tfrl.environments import suites

def make():
    from dm_control import suite
    return suite.load("cartpole", "balance")

suites.load(make, 1)
import tensorflow as tf
print(tf.function(lambda x: 2 * x, jit_compile=True)(tf.ones([])))
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_batch_by_its_name():
    environment = suites.load("dm_control/ball_in_cup-catch", 2)
    assert environment.batch_size == 2
    assert environment.reset().observation["position"].shape == (2, 4)
    single = suite_dm_control.load_task("dm_control/cartpole-balance")
    assert not single.batched
    assert not suite_dm_control.is_task("Pendulum-v1")
    with pytest.raises(ValueError, match="got 'cartpole', expected a name such as"):
        suite_dm_control.load_task("cartpole")


def test_an_action_is_repeated_in_each_member_of_a_batch():
    repeated = suites.load("dm_control/cartpole-balance", 2, action_repeat=3)
    each = suite_dm_control.load("cartpole", "balance")
    repeated.seed(7)
    assert time_limits.find(repeated) == 334  # Of 1,000 steps.
    first = repeated.reset().observation["position"][0]
    member = repeated.envs[0].wrapped_env()
    each.reset()
    each.set_state(member.get_state())
    np.testing.assert_array_equal(
        member.current_time_step().observation["position"], first
    )
    action = np.float32([0.5])
    steps = [each.step(action) for _ in range(3)]
    time_step = repeated.step(np.stack([action, -action]))
    np.testing.assert_array_equal(
        time_step.observation["position"][0], steps[-1].observation["position"]
    )
    np.testing.assert_allclose(time_step.reward[0], sum(t.reward for t in steps), 1e-6)
    number = 1
    while not time_step.is_last().all():
        time_step, number = repeated.step(np.stack([action, -action])), number + 1
    assert number == 334
    assert time_step.discount.tolist() == [1, 1]  # A time limit is no termination.
    with pytest.raises(ValueError, match=r"action_repeat: expected .*, got 0"):
        tfrl.SAC("dm_control/cartpole-balance", action_repeat=0)


@pytest.mark.slow
def test_a_run_and_its_saved_policy_repeat_actions(tmp_path):
    sac = tfrl.SAC(
        "dm_control/cartpole-balance",
        action_repeat=20,
        initial_collect_steps=64,
        num_eval_episodes=1,
        jit_compile=False,
    )
    assert time_limits.find(sac.environment) == 50  # Of 1,000 steps.
    sac.learn(65, progress=False)
    assert sac.evaluate(2).lengths.tolist() == [50, 50]
    sac.save(tmp_path / "run")
    given = types.SimpleNamespace(policy=None, env=None, trust=False, seed=None)
    saved = saved_policy.find(given, str(tmp_path / "run"))
    environment = saved.make_environment(2)
    evaluator = evaluation.Evaluator(environment, saved.load(environment), 2, 0)
    assert evaluator.run(max_steps=1_000).lengths.tolist() == [50, 50]


def test_a_model_with_a_deprecated_word_is_made_without_a_warning(caplog):
    suite_dm_control.load("cheetah", "run").close()
    assert not caplog.records
    absl_logging.warning("a word is deprecated")  # Outside, warnings stay.
    assert len(caplog.records) == 1


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_a_function_that_makes_a_task_has_its_seed_state_and_float32(is_wrapped):
    def make():
        from dm_control import suite
        from dm_control.suite.wrappers import action_scale

        task = suite.load("cartpole", "swingup")
        if is_wrapped:
            task = action_scale.Wrapper(task, minimum=-2.0, maximum=2.0)
        return task

    first, second = (worlds.make_environment(make, 1, 3) for _ in range(2))
    ours = worlds.make_environment("dm_control/cartpole-swingup", 1, 3)
    positions = [e.reset().observation["position"] for e in (first, second, ours)]
    assert positions[0].dtype == tf.float32
    for position in positions[1:]:
        np.testing.assert_array_equal(position, positions[0])
    assert first.pyenv.envs[0].action_spec().maximum == (2 if is_wrapped else 1)
    if not is_wrapped:
        state = first.pyenv.get_state()
        steps = [first.step([[0.5]]).observation["velocity"].numpy()]
        first.pyenv.set_state(state)
        steps.append(first.step([[0.5]]).observation["velocity"].numpy())
        np.testing.assert_array_equal(*steps)


def test_numbers_are_dm_controls():
    from dm_control import suite

    environment = suite_dm_control.load("reacher", "easy", task_kwargs={"random": 3})
    plain = suite.load("reacher", "easy", task_kwargs={"random": 3})
    plain.reset()
    environment.reset()
    action = np.array([0.5, -0.25])
    expected, ours = plain.step(action), environment.step(action)
    for key, value in expected.observation.items():
        np.testing.assert_array_equal(ours.observation[key], value.astype(np.float32))
    assert (ours.reward, ours.discount) == (expected.reward, expected.discount)


def test_the_time_limit_truncates():
    environment = suite_dm_control.load(
        "cartpole", "swingup", task_kwargs={"time_limit": 0.03}
    )
    environment.reset()
    steps = [environment.step(np.zeros(1)) for _ in range(4)]
    assert [int(step.step_type) for step in steps] == [1, 1, 2, 0]
    assert steps[2].discount == 1


def test_the_same_seed_is_the_same_run():
    environments = [suite_dm_control.load("cartpole", "swingup") for _ in range(3)]
    for environment, seed in zip(environments, (3, 3, 4), strict=True):
        environment.seed(seed)
    runs = [run(environment) for environment in environments]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    seeded = suite_dm_control.load("cartpole", "swingup", task_kwargs={"random": 3})
    assert run(seeded) == runs[0]


def steps_of(environment, number, seed=0):
    spec, rng = environment.action_spec(), np.random.default_rng(seed)
    actions = rng.uniform(spec.minimum, spec.maximum, (number, *spec.shape))
    return [environment.step(action) for action in actions]


@pytest.mark.parametrize(
    ("domain", "task"),
    [
        ("cartpole", "balance"),
        pytest.param("hopper", "hop", marks=pytest.mark.slow),
        pytest.param("manipulator", "bring_ball", marks=pytest.mark.slow),
        # These change the model when an episode begins.
        ("point_mass", "hard"),
        ("reacher", "easy"),
    ],
)
def test_a_task_goes_on_from_its_state_bit_for_bit(domain, task):
    """To the end of the episode, and in the next one."""
    one, other = (
        suite_dm_control.load(
            domain, task, task_kwargs={"random": seed, "time_limit": 0.8}
        )
        for seed in (1, 2)
    )
    one.reset()
    steps_of(one, 7)
    state = py_environment.capture_state(one)
    expected = steps_of(one, 100, seed=1)
    assert any(step.is_last() for step in expected)
    # Nothing that `one` has done since changes the state.
    py_environment.restore_state(other, state)
    for step, same in zip(expected, steps_of(other, 100, seed=1), strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, step, same)


@pytest.mark.slow
def test_pixels_have_the_state_of_their_task():
    one, other = (
        suite_dm_control.load_pixels(
            "cartpole", "swingup", task_kwargs={"random": seed}, render_kwargs=SMALL
        )
        for seed in (1, 2)
    )
    one.reset()
    steps_of(one, 3)
    py_environment.restore_state(other, py_environment.capture_state(one))
    for step, same in zip(steps_of(one, 3), steps_of(other, 3), strict=True):
        np.testing.assert_array_equal(
            step.observation["pixels"], same.observation["pixels"]
        )


def test_a_wrapper_with_random_numbers_of_its_own_has_no_state():
    from dm_control import suite
    from dm_control.suite.wrappers import action_noise

    environment = dm_control_wrapper.DmControlWrapper(
        action_noise.Wrapper(suite.load("cartpole", "balance"))
    )
    for call in (environment.get_state, lambda: environment.set_state({})):
        with pytest.raises(NotImplementedError, match="does not support it"):
            call()


def test_a_state_of_another_model_is_an_error():
    state = suite_dm_control.load("cartpole", "balance").get_state()
    environment = suite_dm_control.load("reacher", "easy")
    with pytest.raises(
        ValueError, match=r"another model than the model of Reacher; load"
    ):
        environment.set_state(state)


@pytest.mark.parametrize(("domain", "task"), [("cheetah", "run"), ("humanoid", "walk")])
def test_tasks_conform(domain, task):
    environment = suite_dm_control.load(
        domain,
        task,
        task_kwargs={"time_limit": 0.3},
        env_wrappers=[wrappers.RunStats],
    )
    utils.validate_py_environment(environment, episodes=2)
    assert environment.episodes == 2


def test_renders():
    environment = suite_dm_control.load("cartpole", "swingup", render_kwargs=SMALL)
    environment.reset()
    picture = environment.render()
    assert (picture.shape, picture.dtype) == ((24, 32, 3), np.uint8)
    assert picture.std() > 0


def test_pixels():
    environment = suite_dm_control.load_pixels(
        "cartpole", "swingup", observation_key="image", render_kwargs=SMALL
    )
    spec = environment.observation_spec()
    assert list(spec) == ["image"]
    assert (spec["image"].shape, spec["image"].dtype) == ((24, 32, 3), np.uint8)
    environment.reset()
    time_step = environment.step(np.ones(1))
    assert time_step.observation["image"].dtype == np.uint8
    np.testing.assert_array_equal(time_step.observation["image"], environment.render())


def test_pixels_beside_the_state():
    wrapped = []

    def wrapper(env):
        wrapped.append(env)
        return env

    environment = suite_dm_control.load_pixels(
        "cartpole",
        "swingup",
        pixels_only=False,
        render_kwargs=SMALL,
        env_state_wrappers=[wrapper],
    )
    assert set(environment.observation_spec()) == {"position", "velocity", "pixels"}
    assert environment.reset().observation["pixels"].shape == (24, 32, 3)
    assert len(wrapped) == 1
    # Pixels do not hide the random state of the task.
    assert environment.seed(3) == 3


def test_in_the_graph():
    environment = tf_py_environment.TFPyEnvironment(
        suite_dm_control.load("cartpole", "swingup")
    )
    environment.reset()
    time_step = tf.function(environment.step)(tf.zeros([1, 1]))
    assert time_step.observation["position"].shape == (1, 3)
    assert time_step.observation["position"].dtype == tf.float32


@pytest.mark.parametrize(
    ("domain", "task", "message"),
    [
        ("cartpole", "fly", r"task_name: got .*choose one of balance, .*swingup"),
        ("cartpool", "swingup", r"domain_name: got .*choose one of .*cartpole"),
    ],
)
def test_an_unknown_task_is_an_error(domain, task, message):
    with pytest.raises(ValueError, match=message):
        suite_dm_control.load(domain, task)
