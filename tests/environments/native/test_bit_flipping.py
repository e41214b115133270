import numpy as np
import pytest
import tensorflow as tf

from tfrl.environments import native
from tfrl.environments.native import bit_flipping
from tfrl.trajectories import time_step as ts


def test_steps_are_those_of_a_loop():
    environment = native.load("BitFlipping5-v0", batch_size=50, seed=1)
    rng = np.random.default_rng(0)
    step = environment.reset()
    bits = step.observation["observation"].numpy()
    goal = step.observation["desired_goal"].numpy()
    rows, taken, running = np.arange(50), 0, np.ones(50, bool)
    while running.any():
        np.testing.assert_array_equal(step.observation["achieved_goal"], bits)
        action = rng.integers(0, 5, 50)
        bits[rows, action] = 1 - bits[rows, action]
        step = environment.step(tf.constant(action))
        taken += 1
        at_goal = (bits == goal).all(axis=1)
        seen = step.observation["observation"].numpy()
        np.testing.assert_array_equal(seen[running], bits[running])
        np.testing.assert_array_equal(step.reward[running], at_goal[running] - 1.0)
        np.testing.assert_array_equal(step.discount[running], ~at_goal[running])
        is_last = at_goal | (taken == 5)
        types = np.where(is_last, ts.StepType.LAST, ts.StepType.MID)
        np.testing.assert_array_equal(step.step_type[running], types[running])
        running &= ~is_last
        bits[~running] = seen[~running]
    assert taken == 5


def test_goals_and_first_bits_are_random_unless_all_ones_are_the_goal():
    step = native.load("BitFlipping6-v0", batch_size=500, seed=1).reset()
    for bits in step.observation.values():
        # Five standard deviations of the mean of 500 coins.
        assert np.abs(np.mean(bits, axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(500)
    step = native.load("BitFlippingToOnes6-v0", batch_size=500, seed=1).reset()
    assert np.all(step.observation["desired_goal"] == 1)
    assert 0 < np.mean(step.observation["observation"]) < 1


def test_rewards_are_of_whole_goals():
    goals = np.float32([[0, 1], [1, 1], [0, 0]])
    reward = bit_flipping.compute_reward(goals, np.float32([[0, 1], [0, 1], [1, 1]]))
    np.testing.assert_array_equal(reward, [0, -1, -1])


@pytest.mark.parametrize("name", ["BitFlipping0-v0", "BitFlipping-v0", "BitFlipping5"])
def test_a_name_without_a_number_of_bits_is_an_error(name):
    assert not bit_flipping.is_task(name)
    with pytest.raises(ValueError, match="expected one of Acrobot-v1"):
        native.load(name)


def test_a_picture_shows_the_bits_above_the_goal():
    environment = native.load("BitFlippingToOnes3-v0", batch_size=2)
    environment.reset_to(np.float32([[0, 0, 1, 1, 1, 1]] * 2))
    picture = environment.render()[1]
    assert picture.shape == (32, 48, 3)
    np.testing.assert_array_equal(
        picture[8::16, 8::16, 0], [[64, 64, 255], [255, 255, 255]]
    )


def test_dynamics_can_be_vectorized_once_more():
    dynamics = bit_flipping.dynamics(3)
    randoms = np.random.default_rng(0).random((4, 2, 6), np.float32)

    def run(random):
        outcome = dynamics.step(dynamics.initial(random), tf.constant([0, 2]), None)
        return *outcome, dynamics.observation(outcome.state)

    at_once = tf.vectorized_map(run, randoms, fallback_to_while_loop=False)
    for stacked, *single in zip(at_once, *map(run, randoms), strict=True):
        tf.nest.map_structure(
            lambda x, *rows: np.testing.assert_array_equal(x, np.stack(rows)),
            stacked,
            *single,
        )
