"""Policies of predicted rewards: their probabilities are those of their actions."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.bandits import bandit_data as data
from tfrl import networks
from tfrl.bandits import policies
from tfrl.bandits.policies import largest
from tfrl.policies.utils import BanditPolicyType
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

REWARDS = (0.5, 1.5, 1.0, -1.0)
MASK = tensor_spec.BoundedTensorSpec([4], tf.int32, 0, 1)
SPEC = ts.time_step_spec((tf.TensorSpec([2], tf.float32), MASK))
COUNTS = tf.constant([40.0, 100.0, 9.0, 1.0])


def _network(*rewards):
    layer = keras.layers.Dense(
        len(rewards),
        kernel_initializer="zeros",
        bias_initializer=lambda shape, dtype=None: tf.constant(rewards, tf.float32),
    )
    return networks.Sequential([layer], input_spec=tf.TensorSpec([2], tf.float32))


def _policy(kind, **kwargs):
    return kind(
        SPEC,
        data.action_spec(4),
        _network(*REWARDS),
        observation_and_action_constraint_splitter=lambda observation: observation,
        emit_policy_info=("bandit_policy_type", "predicted_rewards_mean"),
        emit_log_probability=True,
        **kwargs,
    )


def _at(mask, number):
    x = np.zeros([number, 2], np.float32)
    mask = np.tile(np.int32(mask), [number, 1])
    return ts.restart((tf.constant(x), tf.constant(mask)), batch_size=number)


def _probabilities(policy, mask=(1, 1, 1, 1)):
    step = policy.distribution(_at(mask, 1))
    return step.action.probs_parameter().numpy()[0]


KINDS = {
    "greedy": lambda: _policy(policies.GreedyRewardPredictionPolicy),
    "epsilon": lambda: _policy(
        policies.EpsilonGreedyRewardPredictionPolicy, epsilon=0.3
    ),
    "boltzmann": lambda: _policy(
        policies.BoltzmannRewardPredictionPolicy, temperature=0.7
    ),
    "gumbel": lambda: _policy(
        policies.BoltzmannRewardPredictionPolicy,
        boltzmann_gumbel_exploration_constant=3.0,
        num_samples_list=[tf.Variable(COUNTS)],
    ),
    "falcon": lambda: _policy(
        policies.FalconRewardPredictionPolicy, num_samples_list=[tf.Variable(COUNTS)]
    ),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("mask", [(1, 1, 1, 1), (1, 0, 1, 1)])
def test_actions_have_the_probabilities_that_the_policy_tells(name, mask):
    policy = KINDS[name]()
    exact = _probabilities(policy, mask)
    assert exact.sum() == pytest.approx(1.0, abs=1e-5)
    assert exact[1] == 0 or mask[1]
    action = policy.action(_at(mask, 3_000), seed=1).action.numpy()
    found = np.bincount(action, minlength=4) / len(action)
    np.testing.assert_allclose(found, exact, atol=0.035)
    step = policy.action(_at(mask, 20), seed=1)
    np.testing.assert_allclose(
        np.exp(step.info.log_probability), exact[step.action.numpy()], rtol=1e-3
    )


@pytest.mark.parametrize("name", KINDS)
def test_a_row_without_an_allowed_arm_has_the_action_minus_1(name):
    step = KINDS[name]().action(_at((0, 0, 0, 0), 3), seed=0)
    np.testing.assert_array_equal(step.action, -1)


@pytest.mark.parametrize("name", KINDS)
def test_the_seed_decides(name):
    policy = KINDS[name]()
    first, again = (
        policy.action(_at((1, 1, 1, 1), 50), seed=4).action.numpy() for _ in range(2)
    )
    np.testing.assert_array_equal(first, again)


def test_epsilon_is_spread_over_the_allowed_arms():
    policy = KINDS["epsilon"]()
    np.testing.assert_allclose(
        _probabilities(policy, (1, 0, 1, 1)), [0.1, 0, 0.8, 0.1], rtol=1e-5
    )
    step = policy.action(_at((1, 1, 1, 1), 1000), seed=0)
    kinds = step.info.bandit_policy_type.numpy()[:, 0]
    assert (kinds == BanditPolicyType.UNIFORM).mean() == pytest.approx(0.3, abs=0.05)
    greedy = kinds == BanditPolicyType.GREEDY
    assert (step.action.numpy()[greedy] == 1).all()


def test_boltzmanns_probabilities_are_the_softmax():
    exponentials = np.exp(np.array(REWARDS) / 0.7)
    np.testing.assert_allclose(
        _probabilities(KINDS["boltzmann"]()),
        exponentials / exponentials.sum(),
        rtol=1e-5,
    )


def test_falcons_probabilities_are_those_of_the_paper():
    policy = KINDS["falcon"]()
    # 150 rows, 2 * 4 + 4 parameters, 4 arms.
    gamma = np.sqrt(4 * 150 / 12)
    others = 1 / (4 + gamma * (1.5 - np.array([0.5, 1.0, -1.0])))
    expected = [others[0], 1 - others.sum(), others[1], others[2]]
    np.testing.assert_allclose(_probabilities(policy), expected, rtol=1e-4)


def test_falcon_takes_the_same_actions_when_it_is_compiled():
    policy = KINDS["falcon"]()
    time_step = _at((1, 0, 1, 1), 50)

    def act():
        return policy.action(time_step, seed=4).action

    compiled = tf.function(act, autograph=False, jit_compile=True)
    np.testing.assert_array_equal(compiled(), act())


def test_falcons_hint_bounds_the_exploration():
    policy = _policy(
        policies.FalconRewardPredictionPolicy,
        num_samples_list=[tf.Variable(COUNTS)],
        max_exploration_probability_hint=0.05,
    )
    explores = 1 - _probabilities(policy)[1]
    # The next smaller power of two would explore more than 0.05.
    assert 0.02 < explores <= 0.05


def test_falcon_is_uniform_without_rows():
    policy = _policy(
        policies.FalconRewardPredictionPolicy,
        num_samples_list=[tf.Variable(tf.zeros([4]))],
    )
    np.testing.assert_allclose(_probabilities(policy), 0.25, rtol=1e-5)


def test_an_arm_without_rows_has_unbounded_noise():
    counts = tf.Variable([100.0, 100.0, 0.0, 100.0])
    policy = _policy(
        policies.BoltzmannRewardPredictionPolicy,
        boltzmann_gumbel_exploration_constant=1.0,
        num_samples_list=[counts],
    )
    action = policy.action(_at((1, 1, 1, 1), 1000), seed=0).action.numpy()
    # Gumbel's number is positive with probability 1 - 1 / e.
    assert (action == 2).mean() == pytest.approx(1 - np.exp(-1), abs=0.06)


def test_equal_gumbel_scales_give_the_softmax():
    mean = tf.constant([[0.0, 1.0, 2.0]], tf.float64)
    logs = largest.of_gumbel(mean, tf.ones_like(mean), tf.ones([1, 3], tf.bool))
    np.testing.assert_allclose(logs, tf.nn.log_softmax(mean), atol=1e-4)


def test_the_larger_of_two_beta_numbers():
    logs = largest.of_beta(
        tf.constant([2.0, 1.0], tf.float64),
        tf.constant([1.0, 1.0], tf.float64),
        tf.ones([1, 2], tf.bool),
    )
    # The integral of 2 x times x.
    np.testing.assert_allclose(np.exp(logs), [[2 / 3, 1 / 3]], atol=1e-3)


def test_a_network_with_another_number_of_arms_is_refused():
    with pytest.raises(ValueError, match=r"reward_network: got output of shape \(3,\)"):
        policies.GreedyRewardPredictionPolicy(
            data.time_step_spec(2), data.action_spec(4), _network(1.0, 2.0, 3.0)
        )
