"""What all policies of bandits share: the greedy arm, and what it costs."""

import numpy as np
import pytest
import tensorflow as tf

from tests.bandits import bandit_data as data
from tests.bandits.policies import test_reward_prediction_policies as rewards
from tfrl.bandits import policies
from tfrl.bandits.policies import largest
from tfrl.policies import GreedyPolicy
from tfrl.trajectories import time_step as ts


def _observed(x):
    return ts.restart(tf.constant(x, tf.float32), batch_size=len(x))


def _linear():
    """Means of 1, 1.001 and 0.95; the last one is hardly known, and the most probable.

    The parameters of an arm are those of its sums, over its number of rows plus 1.
    """
    rows = np.array([1e4, 1e4, 0.01])
    means = np.array([1.0, 1.001, 0.95])
    policy = policies.LinearThompsonSamplingPolicy(
        data.action_spec(3),
        [tf.constant(np.eye(2) * n) for n in rows],
        [tf.constant([x, 0.0]) for x in means * (rows + 1)],
        [tf.constant(n) for n in rows],
        data.time_step_spec(2),
        emit_log_probability=True,
    )
    return policy, _observed([[1.0, 0.0]] * 5), 1


def _bernoulli():
    """Means of 0.6, 0.61 and 0.5."""
    policy = policies.BernoulliThompsonSamplingPolicy(
        data.time_step_spec(2),
        data.action_spec(3),
        [tf.constant(x) for x in (600.0, 610.0, 0.5)],
        [tf.constant(x) for x in (400.0, 390.0, 0.5)],
        emit_log_probability=True,
    )
    return policy, _observed([[1.0, 0.0]] * 5), 1


def _gumbel():
    """Means of 0.5, 1.5, 1 and -1; the last one has the widest noise."""
    policy = rewards._policy(
        policies.BoltzmannRewardPredictionPolicy,
        boltzmann_gumbel_exploration_constant=9.0,
        num_samples_list=[tf.Variable(rewards.COUNTS)],
    )
    return policy, rewards._at([1, 1, 1, 1], 5), 1


@pytest.mark.parametrize("make", [_linear, _bernoulli, _gumbel])
def test_a_greedy_arm_with_noise_is_the_best_mean_without_an_integral(
    make, monkeypatch
):
    policy, time_step, best = make()
    probabilities = policy.distribution(time_step).action.probs_parameter().numpy()
    assert (probabilities.argmax(axis=1) != best).all()

    def integrate(*_):
        raise AssertionError("nobody reads the probabilities")

    monkeypatch.setattr(largest, "log_probabilities", integrate)
    action, _, info = GreedyPolicy(policy).action(time_step)
    np.testing.assert_array_equal(action, [best] * 5)
    np.testing.assert_array_equal(info.log_probability, np.zeros(5))
    with pytest.raises(AssertionError, match="nobody reads"):
        policy.distribution(time_step)
    with pytest.raises(AssertionError, match="nobody reads"):
        policy.action(time_step)  # Its log probability is emitted.
