import numpy as np
import pytest
import tensorflow as tf

from tfrl.environments import random_tf_environment
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

OBSERVATION = {
    "a": tensor_spec.BoundedTensorSpec((2,), tf.float32, -1, 1),
    "b": tensor_spec.BoundedTensorSpec((), tf.int64, 0, 3),
}
REWARD = tensor_spec.BoundedTensorSpec((), tf.float32, 1, 2)
ACTION = tensor_spec.BoundedTensorSpec((), tf.int32, 0, 1)


def make(batch_size=1, probability=0.3, seed=1):
    return random_tf_environment.RandomTFEnvironment(
        ts.time_step_spec(OBSERVATION, REWARD),
        ACTION,
        batch_size,
        probability,
        seed=seed,
    )


def play(environment, steps):
    actions = tf.zeros([environment.batch_size], tf.int32)
    return [environment.step(actions) for _ in range(steps)]


def assert_equal(steps, others):
    for one, two in zip(tf.nest.flatten(steps), tf.nest.flatten(others), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("batch_size", [1, 7])
def test_members_end_and_begin_by_themselves(batch_size):
    environment = make(batch_size)
    steps = play(environment, 30)
    step_types = np.stack([step.step_type for step in steps])
    rewards = np.stack([step.reward for step in steps])
    discounts = np.stack([step.discount for step in steps])
    assert (step_types[0] == 0).all()
    np.testing.assert_array_equal(step_types[1:] == 0, step_types[:-1] == 2)
    assert (step_types == 2).any(axis=0).all()
    np.testing.assert_array_equal(rewards == 0, step_types == 0)
    np.testing.assert_array_equal(discounts, step_types != 2)


def test_time_steps_follow_their_specs():
    (_, step) = play(make(3), 2)
    for spec, value in zip(
        tf.nest.flatten(ts.time_step_spec(OBSERVATION, REWARD)),
        tf.nest.flatten(step),
        strict=True,
    ):
        assert value.shape == (3, *spec.shape)
        assert value.dtype == spec.dtype
    assert np.abs(step.observation["a"]).max() <= 1
    assert (step.reward.numpy() >= 1).all()
    assert (step.reward.numpy() <= 2).all()


def test_current_time_step_resets_once():
    environment = make(2)
    first = environment.current_time_step()
    assert first.is_first().numpy().all()
    assert_equal(environment.current_time_step(), first)
    (second,) = play(environment, 1)
    assert not second.is_first().numpy().any()
    assert_equal(environment.current_time_step(), second)


def test_it_runs_in_a_graph_and_traces_once():
    environment = make(2)

    @tf.function
    def run(steps):
        time_step = environment.current_time_step()
        for _ in tf.range(steps):
            time_step = environment.step(tf.zeros([2], tf.int32))
        return time_step

    in_graph = [run(tf.constant(n)) for n in (3, 4)][-1]
    other = make(2)
    other.reset()
    assert_equal(in_graph, play(other, 7)[-1])
    assert run.experimental_get_tracing_count() == 1
    assert other._step_function.experimental_get_tracing_count() == 1


def test_a_saved_state_continues_exactly():
    environment = make(3)
    play(environment, 4)
    state = environment.get_state()
    expected = play(environment, 6)
    resumed = make(3, seed=9)
    resumed.set_state(state)
    assert_equal(play(resumed, 6), expected)


def test_another_seed_gives_other_observations():
    one, two = make(seed=1).reset(), make(seed=2).reset()
    assert (one.observation["a"].numpy() != two.observation["a"].numpy()).any()


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (
            tf.zeros([3], tf.int32),
            r"action: got shape \(3,\), expected \(2,\); cast the",
        ),
        ({"a": [0, 0]}, r"action: got {'a': \[0, 0\]}, expected a tensor for Bounded"),
    ],
)
def test_actions_are_checked(action, message):
    environment = make(2)
    environment.reset()
    with pytest.raises(ValueError, match=message):
        environment.step(action)


def test_actions_of_another_kind_are_an_error():
    environment = make(2)
    environment.reset()
    with pytest.raises(
        TypeError, match="action: got dtype float32, expected int32; ca"
    ):
        environment.step(tf.zeros([2]))


def test_arguments_are_checked():
    with pytest.raises(ValueError, match=r"episode_end_probability: .* got 1.5"):
        make(probability=1.5)
    with pytest.raises(ValueError, match=r"batch_size: expected .* at least 1, got 0"):
        make(0)


def test_without_a_seed_it_has_none():
    assert make().is_seeded
    assert not make(seed=None).is_seeded
