import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tfrl.environments import native, suite_gym, wrappers
from tfrl.environments.native import dynamics
from tfrl.specs import array_spec, tensor_spec

VALID = native.Dynamics(
    initial=lambda random: random,
    step=lambda state, action, random: native.Outcome(
        state + action, tf.reduce_sum(state, axis=1), state[:, 0] > 9
    ),
    observation_spec=tf.TensorSpec([2], tf.float32),
    action_spec=tf.TensorSpec([2], tf.float32),
    num_initial_randoms=2,
)


def returning(**fields):
    """A `step` whose outcome has other fields."""

    def step(state, action, random):
        fine = VALID.step(state, action, random)
        return fine._replace(**{k: make(state) for k, make in fields.items()})

    return step


def branch_on(state, action, random):
    return VALID.step(state, action, random) if state[0, 0] > 0 else None


def drawing(random):
    return random + tf.random.uniform([2])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"initial": 3}, TypeError, "initial: got 3 of type int, expected a function;"),
        ({"observe": "no"}, TypeError, "observe: got 'no' of type str, expected a fun"),
        (
            {"action_spec": array_spec.ArraySpec([2], np.float32)},
            TypeError,
            r"action_spec: got ArraySpec\(.*, expected tensor specs; convert it with",
        ),
        (
            {"num_step_randoms": -1},
            ValueError,
            r"num_step_randoms: .* got -1",
        ),
        (
            {"max_episode_steps": 0},
            ValueError,
            r"max_episode_steps: .* got 0",
        ),
    ],
)
def test_fields_are_checked(changes, error, message):
    with pytest.raises(error, match=message):
        dataclasses.replace(VALID, **changes)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"initial": lambda random: tf.zeros([2])},
            ValueError,
            r"initial\(random\): got shape \(2,\), expected static \[3, ...\], the ba",
        ),
        (
            {"initial": lambda random: {"a": random, "b": tf.reduce_sum(random)}},
            ValueError,
            r"initial\(random\)/b: got shape \(\), expected static \[3, ...\]",
        ),
        (
            {"step": lambda *_: 3},
            TypeError,
            r"step: got a \w*Tensor\w*, expected an Outcome; return native.Outcome\(st",
        ),
        (
            {"step": returning(state=lambda state: {"a": state})},
            ValueError,
            r"step\(...\).state: got {'a': 'float32 \(3, 2\)'}, expected float32 \(3,",
        ),
        (
            {"step": returning(reward=lambda state: state)},
            ValueError,
            r"step\(...\).reward: got float32 \(3, 2\), expected float32 \(3,\); cor",
        ),
        (
            {"step": returning(terminated=lambda state: state[:, 0])},
            ValueError,
            r"step\(...\).terminated: got float32 \(3,\), expected bool \(3,\); cor",
        ),
        (
            {"step": returning(truncated=lambda state: state[:, 0])},
            ValueError,
            r"step\(...\).truncated: got float32 \(3,\), expected bool \(3,\); cor",
        ),
        (
            {"restart": lambda state, needed, random: state[:1]},
            ValueError,
            r"restart\(...\): got float32 \(1, 2\), expected float32 \(3, 2\); cor",
        ),
        (
            {"observe": lambda state: state[:, :1]},
            ValueError,
            r"observe\(state\): got float32 \(3, 1\), expected float32 \(3, 2\); cor",
        ),
        (
            {"step": branch_on},
            ValueError,
            r"step: got \w+ \(.*\), expected a function of tensors .*; choose with ",
        ),
        (
            {"initial": drawing},
            ValueError,
            "initial: got the operations RandomUniform, expected a pure function; take",
        ),
    ],
)
def test_functions_are_checked_when_an_environment_is_made(changes, error, message):
    with pytest.raises(error, match=message):
        native.NativeEnvironment(dataclasses.replace(VALID, **changes), batch_size=3)


def test_parameters_may_be_variables():
    bonus = tf.Variable(1.0)
    dynamics = dataclasses.replace(
        VALID, step=returning(reward=lambda state: tf.zeros([3]) + bonus)
    )
    environment = native.NativeEnvironment(dynamics, batch_size=3)
    environment.reset()
    bonus.assign(5.0)
    assert (
        environment.step(np.zeros([3, 2], np.float32)).reward.numpy().tolist()
        == [5.0] * 3
    )


def test_the_state_is_observed_unless_told_otherwise():
    environment = native.NativeEnvironment(VALID, batch_size=3)
    np.testing.assert_array_equal(
        environment.reset().observation, environment.physical_state()
    )


@pytest.mark.parametrize("name", native.names())
def test_pictures_are_gymnasiums_of_the_same_state(name):
    environment = native.load(name, batch_size=2, seed=1)
    pictures = environment.render()
    theirs = suite_gym.load(name)
    theirs.reset()
    theirs.gym.unwrapped.state = environment.physical_state().numpy()[1]
    np.testing.assert_array_equal(pictures[1], theirs.gym.unwrapped.render())
    assert pictures.dtype == np.uint8
    assert pictures.shape == (2, *pictures.shape[1:3], 3)


def test_a_renderer_makes_no_environment_before_it_draws():
    assert dynamics.GymnasiumRenderer("CartPole-v1")._gym_env is None


def test_other_modes_are_an_error():
    with pytest.raises(
        ValueError, match="mode: got 'human', expected 'rgb_array', bec"
    ):
        native.load("CartPole-v1").render("human")


def test_dynamics_without_a_picture_say_so():
    dynamics = native.Dynamics(
        initial=lambda random: random,
        step=lambda state, action, random: native.Outcome(
            state, state[:, 0], state[:, 0] > 2
        ),
        observation_spec=tf.TensorSpec([1], tf.float32),
        action_spec=tf.TensorSpec([], tf.int32),
        num_initial_randoms=1,
    )
    with pytest.raises(NotImplementedError, match="does not support it"):
        native.NativeEnvironment(dynamics).render()


def test_a_bin_is_the_torque_at_its_place_between_the_bounds():
    continuous = native.load("Pendulum-v1", batch_size=5, seed=0)
    discrete = native.NativeEnvironment(
        native.discretize_actions(continuous.dynamics, 5), batch_size=5, seed=0
    )
    state = continuous.dynamics.initial(tf.random.uniform([5, 2], seed=1))
    continuous.reset_to(state)
    discrete.reset_to(state)
    expected = continuous.step(tf.constant([[-2.0], [-1.0], [0.0], [1.0], [2.0]]))
    found = discrete.step(tf.range(5))
    np.testing.assert_array_equal(found.observation, expected.observation)
    np.testing.assert_array_equal(found.reward, expected.reward)
    state = continuous.physical_state()
    np.testing.assert_array_equal(discrete.physical_state(), state)


def test_the_spec_is_that_of_the_wrapper_of_python_environments():
    dynamics = native.load("Pendulum-v1").dynamics
    wrapped = wrappers.ActionDiscretizeWrapper(suite_gym.load("Pendulum-v1"), 11)
    spec = native.discretize_actions(dynamics, 11).action_spec
    assert tensor_spec.to_array_spec(spec) == wrapped.action_spec()


def test_discrete_actions_are_an_error():
    dynamics = native.load("CartPole-v1").dynamics
    with pytest.raises(ValueError, match="leave it out if they are discrete"):
        native.discretize_actions(dynamics, 5)
