"""Linear arms and baselines: numbers by hand, eagerly and in graphs."""

import functools

import numpy as np
import tensorflow as tf

from tfrl.bandits import environments
from tfrl.bandits.environments import environment_utilities as utilities

CONTEXTS = np.array([[1.0, 2.0], [-1.0, 0.0], [0.0, -3.0]], np.float32)


def test_sliding_arms_have_successive_numbers():
    arms = utilities.sliding_linear_reward_fn_generator(3, 2, 0.1)
    np.testing.assert_array_equal([arm.theta for arm in arms], [[0, 1, 2], [1, 2, 3]])
    arms = utilities.normalized_sliding_linear_reward_fn_generator(3, 2, 0.1)
    np.testing.assert_allclose(arms[1].theta, [0.2, 0.4, 0.6])


def test_structured_arms_are_near_each_other():
    arms = utilities.structured_linear_reward_fn_generator(20, 3, 0.0, 0.01)
    theta = np.array([arm.theta for arm in arms])
    assert (np.diff(theta, axis=0) > 0).all()
    assert (np.diff(theta, axis=0) < 0.01).all()
    assert theta[0].max() > 0.5


def test_noise_has_the_deviation():
    (arm,) = utilities.linear_reward_fn_generator([[1.0, 1.0]], 0.5)
    assert arm(CONTEXTS[0], enable_noise=False) == 3.0
    noise = arm(np.tile(CONTEXTS[:1], [4000, 1])) - 3.0
    np.testing.assert_allclose([noise.mean(), noise.std()], [0.0, 0.5], atol=0.05)


def test_arms_with_several_rewards():
    arms = utilities.random_linear_multiple_reward_fn_generator(2, 3, 4)
    assert len(arms) == 3
    np.testing.assert_allclose(arms[1](CONTEXTS), CONTEXTS @ arms[1].thetas)
    (arm,) = utilities.random_linear_multiple_reward_fn_generator(2, 1, 1)
    assert arm.thetas.shape == (2,)


def test_the_best_arm_in_python_and_in_a_graph():
    arms = utilities.linear_reward_fn_generator([[1.0, 0.0], [0.0, 1.0]], 9.0)
    best = {"per_action_reward_fns": arms}
    reward = functools.partial(utilities.tf_compute_optimal_reward, **best)
    action = functools.partial(utilities.tf_compute_optimal_action, **best)
    for wrap in (lambda f: f, tf.function):
        np.testing.assert_array_equal(wrap(reward)(CONTEXTS), [2.0, 0.0, 0.0])
        found = wrap(action)(CONTEXTS)
        np.testing.assert_array_equal(found, [1, 1, 0])
        assert (found.dtype, found.shape) == (tf.int32, [3])
    np.testing.assert_array_equal(
        utilities.compute_optimal_reward(CONTEXTS, arms), [2.0, 0.0, 0.0]
    )


def test_the_best_arms_of_the_wheel():
    x = np.array([[0.1, 0.1], [0.9, -0.1], [-0.9, -0.1]], np.float32)
    action = utilities.tf_wheel_bandit_compute_optimal_action(x, 0.5)
    np.testing.assert_array_equal(action, [0, 2, 4])
    reward = utilities.tf_wheel_bandit_compute_optimal_reward(x, 0.5, 1.0, 50.0)
    np.testing.assert_array_equal(reward, [1.0, 50.0, 50.0])


def test_the_best_arms_of_the_last_round_in_python():
    bandit = environments.BernoulliPyEnvironment([0.25, 0.75], 3, seed=0)
    observation = bandit.reset().observation
    bandit.step(np.zeros(3, int))
    for name, expected in (("reward", 0.75), ("action", 1)):
        best = getattr(utilities, f"compute_optimal_{name}_with_movielens_environment")
        np.testing.assert_array_equal(best(observation, bandit), [expected] * 3)
    matrix = utilities.build_laplacian_over_ordinal_integer_actions_from_env(bandit)
    np.testing.assert_array_equal(matrix, [[1, -1], [-1, 1]])
