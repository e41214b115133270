"""Bandits whose parameters drift or jump: rewards by hand, seeds and compilation."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.bandits import environments
from tfrl.bandits.environments import (
    drifting_linear_environment,
    non_stationary_stochastic_environment,
)

tfd = tfp.distributions


def _normal(*shape):
    return tfd.Normal(tf.zeros(shape), tf.ones(shape))


def _drifting(seed=0, angle=0.3):
    drift = tfd.Deterministic(angle)
    return environments.DriftingLinearEnvironment(
        _normal(2, 4), _normal(4, 3), drift, tfd.Normal([0.0, 9.0, 0.0], 0.1), seed=seed
    )


def _parameters(bandit):
    dynamics = bandit.environment_dynamics
    return (
        dynamics._current_observation_to_reward.numpy(),
        dynamics._current_additive_reward.numpy(),
    )


def test_a_drift_turns_the_parameters_in_one_plane():
    bandit = _drifting()
    before, _ = _parameters(bandit)
    observation = bandit.reset().observation.numpy()
    reward = bandit.step([0, 2]).reward
    after, additive = _parameters(bandit)
    by_hand = (observation @ after + additive)[[0, 1], [0, 2]]
    np.testing.assert_allclose(reward, by_hand, rtol=1e-5)
    # Two rows have turned by the angle, and the others stayed.
    turned = np.flatnonzero((before != after).any(axis=1))
    assert len(turned) == 2
    cos = np.einsum("ra,ra->", before[turned], after[turned])
    cos /= np.square(before[turned]).sum()
    np.testing.assert_allclose(cos, np.cos(0.3), rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(after), np.linalg.norm(before), rtol=1e-5)


def test_the_best_arm_is_best_with_the_means_of_the_additive_rewards():
    bandit = _drifting()
    observation = bandit.reset().observation
    bandit.step([0, 0])
    expected = observation.numpy() @ _parameters(bandit)[0] + [0.0, 9.0, 0.0]
    dynamics = bandit.environment_dynamics
    np.testing.assert_allclose(
        dynamics.compute_optimal_reward(observation), expected.max(axis=1), rtol=1e-5
    )
    np.testing.assert_array_equal(
        dynamics.compute_optimal_action(observation), expected.argmax(axis=1)
    )


@pytest.mark.parametrize(
    "is_compiled", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_a_seed_repeats_the_rounds(is_compiled):
    bandits = [_drifting(seed=5) for _ in range(2)]
    steps = [bandit.step for bandit in bandits]
    if is_compiled:
        steps[1] = tf.function(steps[1], jit_compile=True)
    for bandit in bandits:
        bandit.reset()
    for _ in range(3):
        first, second = (step(tf.constant([1, 2])) for step in steps)
        np.testing.assert_allclose(first.reward, second.reward, rtol=1e-5)
        np.testing.assert_allclose(first.observation, second.observation, rtol=1e-5)


def test_a_saved_state_goes_on_as_before():
    bandit = _drifting()
    bandit.reset()
    state = bandit.get_state()
    first = [bandit.step([0, 1]).reward.numpy() for _ in range(2)]
    bandit.set_state(state)
    again = [bandit.step([0, 1]).reward.numpy() for _ in range(2)]
    np.testing.assert_array_equal(first, again)


def test_parameters_jump_after_an_interval_of_rounds():
    bandit = environments.PiecewiseStochasticEnvironment(
        _normal(2, 3), tfd.Deterministic(6), _normal(3, 4), _normal(4), seed=0
    )
    bandit.reset()
    seen = []
    for _ in range(9):
        observation = bandit.current_time_step().observation.numpy()
        reward = bandit.step([3, 1]).reward
        matrix, additive = _parameters(bandit)
        rewards = observation @ matrix + additive
        np.testing.assert_allclose(reward, rewards[[0, 1], [3, 1]], rtol=1e-5)
        best = bandit.environment_dynamics.compute_optimal_reward(observation)
        np.testing.assert_allclose(best, rewards.max(axis=1), rtol=1e-5)
        seen.append(matrix[0, 0])
    # 2 rounds a step, so a piece is 3 steps.
    pieces = np.unique(seen, return_inverse=True)[1]
    jumps = np.flatnonzero(np.diff(pieces)) + 1
    np.testing.assert_array_equal(jumps, [3, 6])


class _Clock(non_stationary_stochastic_environment.EnvironmentDynamics):
    """The observation is the time, and the reward of arm a is the time plus a."""

    batch_size = 2
    observation_spec = tf.TensorSpec([1], tf.float32)
    action_spec = environments.load("WheelBandit-v0").action_spec()

    def observation(self, env_time):
        return tf.fill([2, 1], tf.cast(env_time, tf.float32))

    def reward(self, observation, env_time):
        assert env_time.dtype == tf.int64
        return observation + tf.range(5.0)


def test_dynamics_of_a_user_get_the_time():
    bandit = environments.NonStationaryStochasticEnvironment(_Clock())
    assert bandit.reset().observation.numpy().tolist() == [[0.0], [0.0]]
    for i in range(3):
        step = bandit.step([0, 4])
        np.testing.assert_array_equal(step.reward, [2 * i, 2 * i + 4])
        np.testing.assert_array_equal(step.observation[:, 0], [2 * i + 2] * 2)


@pytest.mark.parametrize(
    ("name", "distributions"),
    [
        ("observation_distribution", [_normal(4), _normal(4, 3), _normal(3)]),
        ("additive_reward_distribution", [_normal(2, 4), _normal(4, 3), _normal()]),
        (
            "observation_to_reward_distribution",
            [_normal(2, 4), _normal(4, 2), _normal(3)],
        ),
    ],
)
def test_distributions_of_other_shapes_are_refused(name, distributions):
    observation, matrix, additive = distributions
    with pytest.raises(ValueError, match=f"^{name}: got batch shape"):
        drifting_linear_environment.DriftingLinearDynamics(
            observation, matrix, tfd.Deterministic(0.0), additive
        )
