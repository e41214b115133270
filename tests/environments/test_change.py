"""Attributes of environments that are set in all members, wherever these are."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

from tfrl import environments
from tfrl.environments import native
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import time_step_spec

CHOICE = BoundedTensorSpec([], tf.int32, 0, 1)


class Sized(gymnasium.Env):
    """Its first observation is its size."""

    observation_space = spaces.Box(0, 100, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self):
        self.size = 1

    def set_twice(self, size):
        self.size = 2 * size

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.float32([self.size]), {}

    def step(self, action):
        return np.float32([self.size]), 0.0, False, False, {}


class Own(environments.RandomPyEnvironment):
    """An environment of tfrl with an attribute."""

    size = 1

    def __init__(self):
        spec = environments.suite_gym.wrap_env(Sized())
        super().__init__(spec.observation_spec(), spec.action_spec())

    def set_twice(self, size):
        self.size = 2 * size


def wrapped():
    return environments.suite_gym.wrap_env(gymnasium.wrappers.TimeLimit(Sized(), 5))


MAKERS = {
    "one": wrapped,
    "in a wrapper of tfrl": lambda: environments.wrappers.ActionClipWrapper(wrapped()),
    "threads": lambda: environments.BatchedPyEnvironment([wrapped(), wrapped()]),
    "sync": lambda: environments.VectorPyEnvironment(
        gymnasium.vector.SyncVectorEnv([Sized, Sized])
    ),
    "processes": lambda: environments.ParallelPyEnvironment([wrapped, wrapped]),
    "async": lambda: environments.VectorPyEnvironment(
        gymnasium.vector.AsyncVectorEnv([Sized, Sized], context="forkserver")
    ),
}


@pytest.mark.parametrize(
    "kind",
    [
        *(kind for kind in MAKERS if kind not in ("processes", "async")),
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("processes", "async")),
    ],
)
def test_all_members_have_the_attribute_from_the_next_reset_on(kind):
    environment = environments.TFPyEnvironment(MAKERS[kind](), isolation=True)
    try:
        environment.change("size", 7)
        np.testing.assert_array_equal(environment.reset().observation, 7)
        environment.change("set_twice", 4, calls=True)
        np.testing.assert_array_equal(environment.reset().observation, 8)
        with pytest.raises(AttributeError, match="siez"):
            environment.change("siez", 7)
    finally:
        environment.close()


def test_an_environment_of_tfrl_has_the_attribute_itself():
    environment = environments.TFPyEnvironment(
        environments.wrappers.ActionRepeat(Own(), 2)
    )
    environment.change("size", 3)
    assert environment.pyenv.envs[0].wrapped_env().size == 3
    environment.change("set_twice", 3, calls=True)
    assert environment.pyenv.envs[0].wrapped_env().size == 6
    with pytest.raises(AttributeError, match=r"sise: expected.*did you mean size\?"):
        environment.change("sise", 3)


def make_native(force):
    return native.Dynamics(
        initial=lambda random: random,
        step=lambda state, action, random: native.Outcome(
            state + force, force + tf.zeros([2]), tf.zeros([2], tf.bool)
        ),
        observation_spec=tf.TensorSpec([1]),
        action_spec=CHOICE,
        num_initial_randoms=1,
        levels={"force": force},
    )


def test_dynamics_read_their_levels_in_a_program_that_is_traced_once():
    force = tf.Variable(1.0)
    environment = native.NativeEnvironment(make_native(force), 2, seed=0)
    traces = []

    @tf.function
    def step():
        traces.append(1)
        return environment.step(tf.zeros([2], tf.int32)).reward

    environment.reset()
    np.testing.assert_array_equal(step(), 1.0)
    environment.change("force", 5.0)
    np.testing.assert_array_equal(step(), 5.0)
    assert len(traces) == 1
    with pytest.raises(AttributeError, match=r"levels, \['force'\]"):
        environment.change("mass", 5.0)


def test_an_environment_without_attributes_says_so():
    environment = environments.RandomTFEnvironment(
        time_step_spec(tf.TensorSpec([1])), CHOICE
    )
    with pytest.raises(NotImplementedError, match="change: got 'size'"):
        environment.change("size", 1)
