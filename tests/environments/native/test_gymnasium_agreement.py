"""Every native environment agrees with Gymnasium's, from the same state.

Gymnasium computes in float64 and is stepped from exactly our float32 states.
"""

import functools

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import some_slow
from tfrl.environments import native, suite_gym, tf_py_environment

TOLERANCE = 1e-5
TRAJECTORIES = 200  # of each: 1,000 in all
STEPS = {"Acrobot-v1": 80, "MountainCarContinuous-v0": 100, "Pendulum-v1": 100}
NAMES = [name for name in native.names() if name != "CartPole-v0"]

# Maps next states `[N, n]` to their distance from the end of an episode, `[N]`.
MARGINS = {
    "Acrobot-v1": lambda s: -np.cos(s[:, 0]) - np.cos(s[:, 0] + s[:, 1]) - 1,
    "CartPole-v1": lambda s: (np.abs(s[:, [0, 2]]) - [2.4, np.pi / 15]).max(axis=1),
    "MountainCar-v0": lambda s: s[:, 0] - 0.5,
    "MountainCarContinuous-v0": lambda s: s[:, 0] - 0.45,
    "Pendulum-v1": lambda s: np.ones(len(s)),
}
# Bounds that cover more states than random actions reach. Half of Acrobot's
# greatest spins: beyond them a step of 0.2 seconds magnifies float32's rounding.
WIDE = {
    "Acrobot-v1": [np.pi, np.pi, 2 * np.pi, 4.5 * np.pi],
    "CartPole-v1": [2.5, 4, 0.25, 4],
    "MountainCar-v0": [1.2, 0.07],
    "MountainCarContinuous-v0": [1.2, 0.07],
    "Pendulum-v1": [4, 8],
}
ANGLES = {"Acrobot-v1": 2, "Pendulum-v1": 1}


@functools.cache
def load(name):
    return native.load(name, batch_size=TRAJECTORIES, seed=1)


def random_actions(spec, rng, size):
    if spec.dtype.is_integer:
        return rng.integers(0, int(spec.maximum) + 1, size)
    # Some of them beyond the bounds, where they are clipped.
    return rng.uniform(-1.5, 1.5, (size, 1)).astype(np.float32) * spec.maximum


def gymnasium_steps(name, states, actions):
    """Returns next states, observations, rewards and ends, made one at a time."""
    environment = gymnasium.make(
        suite_gym.find_spec(name), disable_env_checker=True
    ).unwrapped
    environment.reset(seed=0)
    # This one keeps its state in float32.
    dtype = np.float32 if name == "MountainCarContinuous-v0" else np.float64
    results = []
    for state, action in zip(states.astype(dtype), actions, strict=True):
        environment.state = state
        environment.steps_beyond_terminated = None  # CartPole's warning and no reward
        observation, reward, terminated, _, _ = environment.step(action)
        results.append((np.array(environment.state), observation, reward, terminated))
    return [np.asarray(column) for column in zip(*results, strict=True)]


def assert_agrees(name, states, actions, next_states, time_step):
    """Compares one step of many members."""
    theirs, observations, rewards, ends = gymnasium_steps(name, states, actions)
    difference = next_states - theirs
    turns = ANGLES.get(name, 0)
    difference[:, :turns] -= 2 * np.pi * np.round(difference[:, :turns] / (2 * np.pi))
    assert np.abs(difference).max() < TOLERANCE
    assert np.abs(time_step.observation - observations).max() < TOLERANCE
    # A state this near may lie on different sides in float32 and float64.
    near = np.abs(MARGINS[name](theirs)) < TOLERANCE
    assert near.mean() < 2e-3
    np.testing.assert_array_equal(time_step.discount[~near] == 0, ends[~near])
    assert np.abs(time_step.reward - rewards)[~near].max() < TOLERANCE


def step(environment, actions):
    """Returns the next states, and the time step in NumPy."""
    time_step = environment.step(actions)
    return (
        environment.physical_state().numpy(),
        tf.nest.map_structure(lambda tensor: tensor.numpy(), time_step),
    )


# Each step of each environment is compared in all of its states below.
@pytest.mark.parametrize("name", some_slow(NAMES, fast=["CartPole-v1", "Pendulum-v1"]))
def test_random_trajectories_agree_at_each_step(name):
    environment, rng = load(name), np.random.default_rng(0)
    spec = environment.action_spec()
    environment.seed(1)
    environment.reset()
    goes_on = np.ones(TRAJECTORIES, bool)
    columns = []
    for number in range(STEPS.get(name, 200)):
        # Half of the trajectories hold an action for a while, which leads further.
        fresh = random_actions(spec, rng, TRAJECTORIES)
        held = fresh if number % 8 == 0 else actions  # noqa: F821
        actions = np.concatenate([fresh[::2], held[1::2]])
        states = environment.physical_state().numpy()
        next_states, time_step = step(environment, actions)
        columns.append(
            [
                leaf[goes_on]
                for leaf in tf.nest.flatten((states, actions, next_states, time_step))
            ]
        )
        goes_on = goes_on & (time_step.step_type != 2)
        if not goes_on.any():
            break
    joined = [np.concatenate(column) for column in zip(*columns, strict=True)]
    assert_agrees(name, *joined[:3], type(time_step)(*joined[3:]))


@pytest.mark.parametrize("name", NAMES)
def test_a_step_agrees_in_all_of_the_state_space(name):
    environment, rng = load(name), np.random.default_rng(1)
    for _ in range(3):
        states = rng.uniform(-1, 1, (TRAJECTORIES, len(WIDE[name]))) * WIDE[name]
        states = states.astype(np.float32)
        if name.startswith("MountainCar"):
            states[:, 0] = states[:, 0] * 0.75 - 0.3
        environment.reset_to(states)
        actions = random_actions(environment.action_spec(), rng, TRAJECTORIES)
        next_states, time_step = step(environment, actions)
        if name != "Pendulum-v1":
            assert (time_step.discount == 0).any()
        assert_agrees(name, states, actions, next_states, time_step)


def test_the_car_stops_at_the_wall():
    environment = load("MountainCar-v0")
    environment.reset_to(np.full([TRAJECTORIES, 2], [-1.19, -0.06], np.float32))
    observation = environment.step(np.zeros(TRAJECTORIES, np.int64)).observation
    np.testing.assert_array_equal(observation[0], np.array([-1.2, 0], np.float32))


@pytest.mark.parametrize("name", native.names())
def test_specs_and_limit_are_those_of_gymnasium(name):
    ours = native.load(name)
    theirs = tf_py_environment.TFPyEnvironment(suite_gym.load(name))
    assert ours.time_step_spec() == theirs.time_step_spec()
    assert ours.action_spec() == theirs.action_spec()
    assert ours.dynamics.max_episode_steps == theirs.duration


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("Acrobot-v1", [-0.1] * 4, [0.1] * 4),
        ("CartPole-v1", [-0.05] * 4, [0.05] * 4),
        ("MountainCar-v0", [-0.6, 0], [-0.4, 0]),
        ("MountainCarContinuous-v0", [-0.6, 0], [-0.4, 0]),
        ("Pendulum-v1", [-np.pi, -1], [np.pi, 1]),
    ],
)
def test_episodes_start_where_gymnasiums_do(name, low, high):
    environment = load(name)
    environment.seed(2)
    states = []
    for _ in range(20):
        environment.reset()
        states.append(environment.physical_state())
    states = np.concatenate(states)  # 4,000 of them
    width = np.subtract(high, low)
    np.testing.assert_allclose(states.min(axis=0), low, atol=1e-6 + 0.01 * width.max())
    np.testing.assert_allclose(states.max(axis=0), high, atol=0.01 * width.max())
    assert (states >= np.array(low) - 1e-6).all()
    assert (states <= np.array(high) + 1e-6).all()
    middle = np.add(low, high) / 2
    # Four standard errors of a uniform mean.
    deviation = 4 * width / np.sqrt(12 * len(states))
    assert (np.abs(states.mean(axis=0) - middle) <= deviation + 1e-6).all()
