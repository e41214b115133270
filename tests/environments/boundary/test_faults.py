"""One table of faults for each place at which arrays enter or leave an environment."""

import pickle
import re
from unittest import mock

import dm_env
import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from tfrl.environments import (
    batched_py_environment,
    dm_env_wrapper,
    gymnasium_wrapper,
    py_environment,
    tf_py_environment,
)
from tfrl.environments.gymnasium import vector_py_environment
from tfrl.policies import random_py_policy
from tfrl.specs import array_spec
from tfrl.train import actor
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

POSITION = array_spec.ArraySpec((3,), np.float32)
LAMP = array_spec.ArraySpec((), np.int32)
FORCE = array_spec.BoundedArraySpec((2,), np.float32, -1, 1)


def floats(*values, dtype=np.float32):
    return np.array(values, dtype)


def see(**leaves):
    """Returns a fault that replaces leaves of the observation."""
    return lambda step: step._replace(observation={**step.observation, **leaves})


def give(**fields):
    """Returns a fault that replaces fields of the time step."""
    return lambda step: step._replace(**fields)


# By its name: the fault of a time step, and the start of the message.
TIME_STEP_FAULTS = {
    "NaN": (see(position=floats(0, np.nan, 0)), "observation/position: got NaN at"),
    "infinity": (see(position=floats(0, np.inf, 0)), "observation/position: got inf"),
    "float64": (
        see(position=floats(1, 2, 3, dtype=np.float64)),
        "observation/position: got dtype float64, expected",
    ),
    "complex": (
        see(position=floats(1, 2, 3j, dtype=np.complex64)),
        "observation/position: got dtype complex64, expected",
    ),
    "objects": (
        see(position=floats(1, 2, 3, dtype=object)),
        "observation/position: got a ndarray of Python objects, expected",
    ),
    "strings": (
        see(position=np.array(["1", "2", "3"])),
        "observation/position: got dtype <U",
    ),
    "None": (see(position=None), "observation/position: got None, expected"),
    "a string": (see(position="abc"), "observation/position: got dtype <U3, "),
    "a longer array": (
        see(position=floats(1, 2, 3, 4)),
        r"observation/position: got shape \(4,\), expected \(3,\)",
    ),
    "one that broadcasts": (
        see(position=floats(1)),
        r"observation/position: got shape \(1,\), expected \(3,\)",
    ),
    "a number for an array": (
        see(position=np.float32(1)),
        r"observation/position: got shape \(\), expected \(3,\)",
    ),
    "an axis more": (
        see(position=floats([1, 2, 3])),
        r"observation/position: got shape \(1, 3\), expected \(3,\)",
    ),
    "no numbers": (see(position=floats()), r"observation/position: got shape \(0,\)"),
    "a fraction": (see(lamp=0.5), "observation/lamp: got dtype float64 with 0.5, exp"),
    "another integer": (see(lamp=np.int64(1)), "observation/lamp: got dtype int64, "),
    "a large integer": (see(lamp=2**40), "observation/lamp: got dtype int64 with 1099"),
    "an extra field": (see(wind=floats(1)), "observation: got .* another structure"),
    "a missing field": (
        give(observation={"lamp": np.int32(1)}),
        "observation: got .* another structure",
    ),
    "no observation": (give(observation=None), "observation: got None, another struc"),
    "reward NaN": (give(reward=np.float32(np.nan)), "reward: got NaN, expected a fin"),
    "reward infinity": (give(reward=-np.inf), "reward: got -inf, expected a finite"),
    "reward too large": (give(reward=1e39), "reward: got 1e.39 .infinite in float32"),
    "reward complex": (give(reward=1j), "reward: got dtype complex128, expected"),
    "reward string": (give(reward="1"), "reward: got dtype <U1, expected"),
    "reward None": (give(reward=None), "reward: got None, expected"),
    "reward array": (
        give(reward=floats(1)),
        r"reward: got shape \(1,\), expected \(\)",
    ),
    "discount NaN": (give(discount=np.nan), "discount: got NaN, expected a finite"),
    "discount None": (give(discount=None), "discount: got None, expected"),
    "discount array": (give(discount=floats(1, 1)), r"discount: got shape \(2,\), "),
    "step type 3": (give(step_type=np.int32(3)), "step_type: got 3, expected 0 .FIRST"),
    "step type -1": (give(step_type=-1), "step_type: got -1, expected 0 .FIRST., 1 "),
    "step type 1.0": (give(step_type=1.0), "step_type: got dtype float64, expected"),
    "step type NaN": (give(step_type=np.nan), "step_type: got dtype float64 with nan"),
    "step type large": (give(step_type=2**32), "step_type: got dtype int64 with 4294"),
    "step type None": (give(step_type=None), "step_type: got None, expected"),
    "a tuple": (tuple, "time_step: got a tuple .*, expected a TimeStep; return ts.r"),
    "nothing": (lambda step: None, "time_step: got a NoneType .*, expected a TimeStep"),
    "Gymnasium's result": (
        lambda step: (step.observation, 1.0, False, False, {}),
        "time_step: got a tuple .*, expected a TimeStep",
    ),
}


class Maze(py_environment.PyEnvironment):
    """Makes a fault in its first step, and keeps the actions that it got."""

    def __init__(self, fault=lambda step: step):
        super().__init__()
        self.fault = fault
        self.actions = []

    def observation_spec(self):
        return {"position": POSITION, "lamp": LAMP}

    def action_spec(self):
        return FORCE

    def _reset(self):
        return ts.restart({"position": floats(1, 2, 3), "lamp": np.int32(1)})

    def _step(self, action):
        self.actions.append(action)
        return self.fault(ts.transition(self._current_time_step.observation, 1.0))


def batch(environment):
    members = [environment, Maze()]
    return batched_py_environment.BatchedPyEnvironment(members, False)


def by_tf_py_environment(environment):
    environment = tf_py_environment.TFPyEnvironment(environment)
    environment.reset()
    environment.step(tf.zeros([environment.batch_size, 2]))


def by_batch(environment):
    by_tf_py_environment(batch(environment))


def by_actor(environment):
    seen = []
    policy = random_py_policy.RandomPyPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    act = actor.Actor(
        environment,
        policy,
        tf.Variable(0, dtype=tf.int64),
        steps_per_run=1,
        observers=[seen.append],
    )
    try:
        act.run()
    finally:
        assert not seen


@pytest.mark.parametrize("run", [by_tf_py_environment, by_batch, by_actor])
@pytest.mark.parametrize("fault", TIME_STEP_FAULTS)
def test_a_fault_of_a_time_step_is_named(run, fault):
    make, message = TIME_STEP_FAULTS[fault]
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        run(Maze(make))
    text = str(raised.value)
    # The text of a nest may have line breaks. A batch has a dtype of its own.
    start = f"{message.partition(':')[0]}: got" if run is by_batch else message
    assert re.match(f"(?s){start}", text)
    assert re.search("correct the environment, or its spec|return ts.restart", text)
    if run is not by_batch:
        assert " from environment Maze at step 2" in text


@pytest.mark.parametrize(
    "harmless",
    [
        see(position=[1.0, 2.0, 3.0]),
        see(lamp=1),
        give(reward=1),
        give(reward=np.float64(0.5)),
        give(reward=np.True_),
        give(step_type=np.int64(1)),
    ],
)
def test_what_the_specs_can_hold_gets_their_dtypes_before_an_observer(harmless):
    seen = []
    environment = Maze(harmless)
    policy = random_py_policy.RandomPyPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    act = actor.Actor(
        environment,
        policy,
        tf.Variable(0, dtype=tf.int64),
        steps_per_run=1,
        transition_observers=[seen.append],
    )
    act.run()
    (_, _, step), *_ = seen
    assert step.observation["position"].dtype == np.float32
    assert step.observation["lamp"].dtype == step.step_type.dtype == np.int32
    assert step.reward.dtype == np.float32


# By its name: the values that Gymnasium's step returns instead of its five own.
GYMNASIUM_FAULTS = {
    "complex": ({0: floats(1, 2, 3j, dtype=np.complex64)}, "observation: got dtype co"),
    "strings": ({0: ["1", "2", "3"]}, "observation: got dtype <U1, expected"),
    "objects": ({0: floats(1, 2, 3, dtype=object)}, "observation: got a ndarray of P"),
    "None": ({0: None}, "observation: got None, expected an array of dtype float32"),
    "too large": ({0: [1e39, 0, 0]}, r"observation: got 1e\+39 at index \[0\]"),
    "reward NaN": ({1: np.nan}, "reward: got (NaN|nan)"),
    "reward complex": ({1: 1j}, "reward: got 1j of type complex from"),
    "reward None": ({1: None}, "reward: got None of type NoneType from"),
    "NaN for an end": ({2: np.nan}, "step: got terminated=nan and truncated=.*False"),
    "NaN for a cut": ({3: np.nan}, "step: got terminated=.*False.* and truncated=nan"),
    "None for an end": ({2: None}, "step: got terminated=None"),
    "a text for an end": ({2: "False"}, "step: got terminated='False'"),
    "2 for an end": ({2: 2}, "step: got terminated=2"),
    "two ends": ({2: np.zeros(2, np.bool_)}, "step: got terminated=array"),
}


class Gym(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-9, 9, (3,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    faults = {}  # noqa: RUF012

    def reset(self, *, seed=None, options=None):
        return floats(1, 2, 3), {}

    def step(self, action):
        self.action = action
        result = [floats(1, 2, 3), 1.0, False, False, {}]
        return [self.faults.get(i, value) for i, value in enumerate(result)]


class VectorGym(gymnasium.vector.VectorEnv):
    """A vector environment with arrays of its own, of one member."""

    num_envs = 1
    single_observation_space = Gym.observation_space
    single_action_space = Gym.action_space
    observation_space = gymnasium.vector.utils.batch_space(Gym.observation_space)
    action_space = gymnasium.vector.utils.batch_space(Gym.action_space)
    faults = {}  # noqa: RUF012

    def reset(self, *, seed=None, options=None):
        return floats([1, 2, 3]), {}

    def step(self, action):
        self.action = action
        result = [floats([1, 2, 3]), np.ones(1), np.zeros(1, bool), np.zeros(1, bool)]
        return [*(self.faults.get(i, value) for i, value in enumerate(result)), {}]


@pytest.mark.parametrize("kind", [Gym, VectorGym])
@pytest.mark.parametrize("fault", GYMNASIUM_FAULTS)
def test_a_fault_of_a_gymnasium_environment_is_named(kind, fault):
    inner = kind()
    inner.faults, message = GYMNASIUM_FAULTS[fault]
    if kind is Gym:
        environment = gymnasium_wrapper.GymnasiumWrapper(inner)
    else:
        environment = vector_py_environment.VectorPyEnvironment(inner)
    environment.reset()
    with pytest.raises(
        ValueError, match=rf"(?s)^{message}.*{kind.__name__}.*; (correct|return) "
    ):
        environment.step(np.zeros(FORCE.shape if kind is Gym else (1, 2), np.float32))


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (
            [300, 1],
            "observation: got dtype int64 with 300, expected an array of .*uint8",
        ),
        ([-1, 1], "observation: got dtype int64 with -1, expected"),
        ([0.5, 1.0], "observation: got dtype float64 with 0.5, expected"),
        ([np.nan, 1.0], "observation: got dtype float64 with nan, expected"),
    ],
)
def test_integers_do_not_change_in_silence(number, message):
    inner = Gym()
    inner.observation_space = gymnasium.spaces.Box(0, 255, (2,), np.uint8)
    inner.reset = lambda seed=None, options=None: (number, {})
    with pytest.raises(ValueError, match=f"^{message}.* environment Gym; correct"):
        gymnasium_wrapper.GymnasiumWrapper(inner).reset()
    inner.reset = lambda seed=None, options=None: ([200.0, 1.0], {})
    time_step = gymnasium_wrapper.GymnasiumWrapper(inner).reset()
    assert time_step.observation.tolist() == [200, 1]
    assert time_step.observation.dtype == np.uint8


class DmMaze(dm_env.Environment):
    reset = lambda self: dm_env.restart(floats(1, 2, 3))  # noqa: E731
    step = lambda self, action: dm_env.transition(1.0, floats(1, 2, 3))  # noqa: E731
    observation_spec = lambda self: dm_env.specs.Array((3,), np.float32)  # noqa: E731

    def action_spec(self):
        return dm_env.specs.BoundedArray((2,), np.float32, -1, 1)


ACTION_FAULTS = {
    "NaN": (
        floats(0, np.nan),
        ValueError,
        "action: got NaN at index .*correct the policy",
    ),
    "infinity": (
        floats(np.inf, 0),
        ValueError,
        "action: got inf at index .*correct the p",
    ),
    "too large": (np.array([1e39, 0]), ValueError, r"action: got 1e\+39 at index "),
    "a longer array": (floats(0, 0, 0), ValueError, r"action: got shape .*3,?\), exp"),
    "one that broadcasts": (floats(0), ValueError, r"action: got shape .*1,?\), expec"),
    "an axis more": (
        floats([0, 0]),
        ValueError,
        "action: got shape .* expected .*; ta",
    ),
    "complex": (
        floats(0, 1j, dtype=np.complex64),
        TypeError,
        "action: got dtype compl",
    ),
    "strings": (
        np.array(["0", "0"]),
        TypeError,
        "action: got dtype <U1, expected .*; c",
    ),
    "objects": (
        floats(0, 0, dtype=object),
        TypeError,
        "action: got a ndarray of Pytho",
    ),
}


def of_wrapper():
    return gymnasium_wrapper.GymnasiumWrapper(Gym())


def of_batch():
    return batched_py_environment.BatchedPyEnvironment([of_wrapper()], False)


def of_vector():
    return vector_py_environment.VectorPyEnvironment(VectorGym())


def of_dm_env():
    return dm_env_wrapper.DmEnvWrapper(DmMaze())


def of_tf_py_environment():
    return tf_py_environment.TFPyEnvironment(Maze())


@pytest.mark.parametrize(
    "make", [of_wrapper, of_batch, of_vector, of_dm_env, of_tf_py_environment]
)
@pytest.mark.parametrize("fault", ACTION_FAULTS)
def test_a_fault_of_an_action_is_named(make, fault):
    action, error, message = ACTION_FAULTS[fault]
    environment = make()
    environment.reset()
    with pytest.raises(error, match=f"^{message}") as raised:
        environment.step(action[np.newaxis] if environment.batched else action)
    assert " for environment " in str(raised.value)


@pytest.mark.parametrize("fault", ACTION_FAULTS)
def test_a_faulty_action_of_a_policy_reaches_neither_environment_nor_observer(fault):
    action, error, message = ACTION_FAULTS[fault]
    environment, seen = Maze(), []
    act = actor.Actor(
        environment,
        mock.Mock(action=lambda *_: policy_step.PolicyStep(action)),
        tf.Variable(0, dtype=tf.int64),
        steps_per_run=1,
        observers=[seen.append],
    )
    with pytest.raises(error, match=f"^{message}"):
        act.run()
    assert not seen
    assert not environment.actions


def test_numbers_of_a_graphs_action_are_checked():
    environment = of_tf_py_environment()
    environment.reset()
    step = tf.function(environment.step)
    with (
        pytest.raises(
            ValueError, match=r"^action: got NaN at index \[0, 1\], expected"
        ),
        environment.reraise(),
    ):
        step(tf.constant([[0.0, np.nan]]))
    assert not environment.pyenv.envs[0].actions


@pytest.mark.parametrize("action", [0.7, np.nan, "1", None, np.float32(1), [1, 2]])
def test_a_choice_is_one_integer(action):
    inner = Gym()
    inner.action_space = gymnasium.spaces.Discrete(3)
    environment = gymnasium_wrapper.GymnasiumWrapper(inner)
    environment.reset()
    with pytest.raises(
        (TypeError, ValueError), match=r"^action: got .* environment Gym"
    ):
        environment.step(action)
    for choice in (1, np.int32(1), np.array(1, np.uint8), np.int64(1), tf.constant(1)):
        environment.step(choice)
        assert type(inner.action) is int


def test_the_checks_can_be_pickled_with_their_environment():
    environment = pickle.loads(pickle.dumps(of_wrapper()))
    environment.reset()
    with pytest.raises(ValueError, match="action: got NaN"):
        environment.step(floats(0, np.nan))
