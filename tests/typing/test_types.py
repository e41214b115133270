import os
import pathlib
import pickle
import re
import subprocess
import sys

import pytest

import tfrl
from tfrl.trajectories import PolicyStep, TimeStep, Trajectory
from tfrl.typing import types

# The aliases that code written for TF-Agents uses.
TF_AGENTS_NAMES = re.findall(
    r"\w+",
    """
    Array ArraySpec Bool BoundedTensorSpec ComparatorFn Distribution DistributionSpecV2
    Float FloatOrReturningFloat GymEnv GymEnvWrapper Int LossFn Nested NestedArray
    NestedArraySpec NestedBoundedTensorSpec NestedDistribution NestedLayer NestedNetwork
    NestedSpec NestedSpecTensorOrArray NestedTensor NestedTensorOrArray NestedTensorSpec
    NestedVariable Network Observer Optimizer PolicyStep PyEnv PyEnvWrapper Seed Shape
    ShapeSequence Spec SpecTensorOrArray Splitter Tensor TensorOrArray TensorSpec
    TimeStep Trajectory
    """,
)


def test_aliases_of_tf_agents_exist():
    assert [name for name in TF_AGENTS_NAMES if not hasattr(types, name)] == []


def test_imports_without_tensorflow():
    code = (
        "import sys; from tfrl.typing import types; types.Tensor\n"
        "assert not {'tensorflow', 'keras', 'gymnasium'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# What type checkers must accept, or refuse in the lines that end with "# Error".
USERS_SCRIPT = """
from typing import Any, assert_type

import numpy as np
import tensorflow as tf

from tfrl.drivers import py_driver
from tfrl.environments import py_environment, tf_environment
from tfrl.policies import py_policy, tf_policy
from tfrl.trajectories import (
    PolicyStep,
    StepType,
    TimeStep,
    Trajectory,
    from_transition,
    restart,
    termination,
    time_step_spec,
    transition,
    truncation,
)
from tfrl.typing import types

Observation = dict[str, np.ndarray]


def run_arrays(env: py_environment.PyEnvironment, policy: py_policy.PyPolicy) -> float:
    time_step, state = env.reset(), policy.get_initial_state(env.batch_size or 1)
    total = 0.0
    while not time_step.is_last():
        policy_step = policy.action(time_step, state)
        state = policy_step.state
        time_step = env.step(policy_step.action)
        total += time_step.reward
        total += 0.9 * float(time_step.discount) * time_step.reward.item()
    assert_type(time_step.step_type, np.ndarray)
    time_step = time_step._replace(reward=np.float32(0), discount=0.0)
    time_step = time_step._replace(reward={"a": [1.0]}, observation=np.zeros(2))
    driver = py_driver.PyDriver(env, policy, [], max_steps=3)
    time_step, state = driver.run(time_step, state)
    assert_type(time_step.discount, np.ndarray)
    if time_step.step_type == StepType.LAST:
        print(time_step.observation["image"].shape[0], time_step[0])
    time_step.discount.numpy()  # Error
    time_step.done  # Error
    return total


def run_tensors(env: tf_environment.TFEnvironment, policy: tf_policy.TFPolicy) -> None:
    time_step: TimeStep = env.reset()
    while not time_step.is_last().numpy().all():
        policy_step = policy.action(time_step)
        next_time_step = env.step(policy_step.action)
        frame = from_transition(time_step, policy_step, next_time_step)
        frame = frame.replace(reward=tf.zeros([3]), discount=1.0)
        print(frame.policy_info.log_probability, frame.is_boundary().numpy().any())
        time_step = next_time_step
        print(time_step.reward.numpy(), time_step.reward.shape.rank)
        print(time_step.reward[0], time_step.reward["nested"] * 2.0)
        print(time_step.observation["image"], policy_step.action.numpy())
        time_step = time_step._replace(reward=tf.cast(time_step.reward, tf.int32))


def make_time_steps() -> TimeStep:
    step = restart({"a": np.zeros(3)}, batch_size=2)
    step = transition(np.zeros(3), reward=1.0, discount=np.float32(0.5))
    step = transition(np.zeros(3), reward="1.0")  # Error
    step = termination(np.zeros(3), reward=np.zeros(2))
    step = termination(np.zeros(3), "reward")  # Error
    step = truncation(np.zeros(3), reward={"a": 1.0})
    step = TimeStep(StepType.MID, 1.0, np.float32(0.1), np.zeros(3))
    step = TimeStep(np.int32(1), np.zeros(3), 0.5, [np.zeros(3)])
    step = TimeStep(1, "reward", 0.5, np.zeros(3))  # Error
    step = TimeStep(1, 1.0, 0.5)  # Error
    step = step._replace(reward="reward")  # Error
    step = step._replace(rewards=1.0)  # Error
    step.rewards  # Error
    step.is_over()  # Error
    spec = time_step_spec({"a": tf.TensorSpec([3])})
    print(spec.observation["a"].shape, spec.reward.dtype)
    first, *rest = step
    tensors: TimeStep = tf.nest.map_structure(tf.constant, TimeStep(first, *rest))
    return tensors


def make_policy_steps() -> PolicyStep:
    step = PolicyStep(np.zeros(3))
    step = PolicyStep({"a": tf.zeros([3])}, info={"b": 1})
    step = step._replace(state=3).replace(info=())
    step = PolicyStep(actions=3)  # Error
    step.actions  # Error
    return step


def observe(frame: Trajectory) -> None:
    print(frame.action.numpy(), frame.policy_info["a"], frame[0], list(frame))
    frame = Trajectory(0, np.zeros(3), 2, (), 1, 0.5, 1.0)
    frame = Trajectory(0, np.zeros(3), 2, (), 1, "reward", 1.0)  # Error
    frame.info  # Error
    frame.is_over()  # Error


def choose(
    time_step: TimeStep[np.ndarray, np.ndarray, np.ndarray, Observation],
) -> PolicyStep[np.ndarray]:
    assert_type(time_step.reward, np.ndarray)
    assert_type(time_step.observation, Observation)
    policy_step = PolicyStep[int](3)
    frame = from_transition(time_step, policy_step, time_step)
    assert_type(frame.observation, Observation)
    assert_type(frame.action, int)
    return PolicyStep(time_step.observation["a"])


def reset(env: py_environment.PyEnvironment) -> types.ArrayTimeStep:
    time_step: types.TimeStep = env.reset()
    return time_step
"""

# Other packages than these would only take time.
MYPY_SETTINGS = """
[mypy]
strict = true
ignore_missing_imports = true
follow_imports = skip
[mypy-numpy.*,tfrl.*]
follow_imports = silent
"""


@pytest.mark.slow
def test_a_strict_type_checker_knows_the_fields_of_steps(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "script.py").write_text(USERS_SCRIPT)
    (tmp_path / "mypy.ini").write_text(MYPY_SETTINGS)
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "script.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(pathlib.Path(tfrl.__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    found = re.findall(r"^script\.py:(\d+): error", result.stdout, re.M)
    lines = enumerate(USERS_SCRIPT.splitlines(), start=1)
    expected = {n for n, line in lines if line.endswith("# Error")}
    assert set(map(int, found)) == expected, result.stdout + result.stderr


@pytest.mark.parametrize("kind", [TimeStep, PolicyStep, Trajectory])
def test_types_of_fields_leave_values_as_they_are(kind):
    value = kind[int](*range(len(kind._fields)))
    assert type(value) is kind
    assert pickle.loads(pickle.dumps(value)) == value == tuple(value)
    assert not hasattr(value, "__dict__")
    assert type(value._replace(**value._asdict())) is kind
