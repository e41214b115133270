"""Agents that predict rewards: losses by hand, counts, masks, and that they learn."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.bandits import bandit_data as data
from tfrl import networks, testing, train
from tfrl.bandits import agents, environments, metrics
from tfrl.bandits import networks as bandit_networks
from tfrl.bandits.agents import utils
from tfrl.bandits.policies import loss_utils
from tfrl.trajectories import time_step as ts

SPECS = data.time_step_spec(2), data.action_spec(3)
_constant = functools.partial(data.constant_network, 2)


def _agent(*rewards, kind=agents.GreedyRewardPredictionAgent, **kwargs):
    rewards = rewards or (1.0, 2.0, 3.0)
    optimizer = keras.optimizers.SGD(0.5)
    return kind(*SPECS, _constant(*rewards), optimizer, **kwargs)


def _rounds(action, reward):
    x = np.zeros([*np.shape(action), 2], np.float32)
    return data.experience(x, action, reward)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (agents.GreedyRewardPredictionAgent, [_constant(1.0), None]),
        (agents.DropoutThompsonSamplingAgent, [0.1, (3,), None]),
        (agents.LinearUCBAgent, []),
        (agents.RankingAgent, [_constant(1.0), None]),
        (agents.BernoulliThompsonSamplingAgent, []),
    ],
)
def test_an_agent_without_specs_of_time_steps_is_refused(kind, arguments):
    with pytest.raises(ValueError, match="time_step_spec: expected a TimeStep of spec"):
        kind(None, SPECS[1], *arguments)


def test_the_loss_is_the_mean_squared_error_of_the_chosen_arms():
    info = _agent().loss(_rounds([[0, 2]], [[3.0, 2.5]]))
    assert float(info.loss) == pytest.approx((4 + 0.25) / 2)


def test_weights_multiply_the_errors():
    info = _agent().loss(_rounds([[0], [2]], [[3.0], [2.5]]), tf.constant([0.5, 4.0]))
    assert float(info.loss) == pytest.approx((0.5 * 4 + 4 * 0.25) / 2)


def test_a_laplacian_adds_the_differences_of_related_arms():
    laplacian = utils.build_laplacian_over_ordinal_integer_actions(SPECS[1])
    np.testing.assert_array_equal(laplacian, [[1, -1, 0], [-1, 2, -1], [0, -1, 1]])
    agent = _agent(
        1.0, 2.0, 4.0, laplacian_matrix=laplacian, laplacian_smoothing_weight=0.1
    )
    info = agent.loss(_rounds([[0]], [[1.0]]))
    assert float(info.loss) == pytest.approx(0.1 * (1 + 4))


def test_a_heteroscedastic_error_by_hand():
    error = loss_utils.heteroscedastic_error(
        tf.constant([3.0]), tf.constant([1.0]), tf.constant([np.log(2.0)], tf.float32)
    )
    np.testing.assert_allclose(error, [4 / 2 / 2 + np.log(2) / 2], rtol=1e-6)


def test_a_train_step_moves_the_chosen_arm_alone_and_counts_it():
    agent = _agent()
    agent.train(_rounds([[0, 0]], [[3.0, 3.0]]))
    # The bias moves by 0.5 * 2 * (3 - 1).
    _, bias = agent.policy.variables()[:2]
    np.testing.assert_allclose(bias, [3.0, 2.0, 3.0])
    np.testing.assert_array_equal(agent.num_samples, [2, 0, 0])


def test_boundaries_do_not_count():
    agent = _agent()
    frames = _rounds([[0, 1]], [[3.0, 100.0]])
    kinds = tf.constant([[0, 2, 0]])
    info = agent.train(
        frames._replace(step_type=kinds[:, :2], next_step_type=kinds[:, 1:])
    )
    assert float(info.loss) == pytest.approx(4.0)
    np.testing.assert_array_equal(agent.num_samples, [1, 0, 0])


def test_gradients_are_clipped():
    agent = _agent(gradient_clipping=0.1)
    agent.train(_rounds([[0]], [[3.0]]))
    np.testing.assert_allclose(agent.policy.variables()[1], [1.05, 2, 3], rtol=1e-6)


EXPLORERS = {
    "greedy": (agents.GreedyRewardPredictionAgent, {}),
    "epsilon": (agents.NeuralEpsilonGreedyAgent, {"epsilon": 0.1}),
    "boltzmann": (agents.NeuralBoltzmannAgent, {"temperature": 0.05}),
    "falcon": (agents.NeuralFalconAgent, {"exploitation_coefficient": 20.0}),
}


@pytest.mark.parametrize(
    ("name", "jit_compile"),
    [
        ("falcon", False),
        *(pytest.param(name, True, marks=pytest.mark.slow) for name in EXPLORERS),
    ],
)
def test_it_learns_arms_with_features(name, jit_compile):
    kind, arguments = EXPLORERS[name]
    bandit = environments.load("PaddedArmsBandit-v0", 16, seed=0)
    network = bandit_networks.create_feed_forward_common_tower_network(
        bandit.observation_spec(), (16,), (16,), (16,), seed=0
    )
    agent = kind(
        bandit.time_step_spec(),
        bandit.action_spec(),
        network,
        keras.optimizers.Adam(0.01),
        accepts_per_arm_features=True,
        seed=0,
        **arguments,
    )
    regret = metrics.CumulativeRegretMetric(bandit)
    loop = train.OnPolicyLoop(
        bandit,
        agent,
        [regret],
        collect_steps_per_iteration=4,
        seed=0,
        jit_compile=jit_compile,
    )
    loop.run(100)
    first = float(regret.result())
    loop.run(100)
    # It is at most half of what it was.
    assert float(regret.result()) - first < first / 2
    assert float(agent.num_samples[0]) == 16 * 4 * 200


def test_a_network_of_variances_learns_them():
    network = bandit_networks.HeteroscedasticQNetwork(
        SPECS[0].observation, SPECS[1], fc_layer_params=(8,), seed=0
    )
    agent = agents.GreedyRewardPredictionAgent(
        *SPECS, network, keras.optimizers.Adam(0.05), seed=0
    )
    rng = np.random.default_rng(0)
    step = tf.function(agent.train, autograph=False)
    deviations = np.array([0.5, 3.0, 1.0])
    for _ in range(300):
        action = rng.integers(3, size=[64, 1])
        reward = action + deviations[action] * rng.normal(size=[64, 1])
        step(_rounds(action, reward))
    output, _ = network(tf.zeros([1, 2]))
    np.testing.assert_allclose(output.q_value_logits[0], [0, 1, 2], atol=0.5)
    found = np.exp(output.log_variance[0] / 2)
    np.testing.assert_allclose(found, deviations, rtol=0.3)


def test_variances_have_bounds():
    network = bandit_networks.HeteroscedasticQNetwork(
        SPECS[0].observation, SPECS[1], min_variance=0.5, max_variance=2.0, seed=0
    )
    output, _ = network(tf.random.stateless_normal([50, 2], [0, 0]) * 1e3)
    variance = np.exp(output.log_variance)
    assert variance.min() >= 0.4999
    assert variance.max() <= 2.0001


class TestConformance(testing.AgentConformance):
    def make_agent(self):
        network = networks.QNetwork(
            SPECS[0].observation, SPECS[1], fc_layer_params=(4,), seed=0
        )
        return agents.NeuralEpsilonGreedyAgent(
            *SPECS, network, keras.optimizers.Adam(0.01), epsilon=0.1, seed=0
        )


def test_rows_are_counted_in_given_variables():
    counts = [tf.Variable(0, dtype=tf.int64) for _ in range(3)]
    agent = _agent(kind=agents.NeuralFalconAgent, num_samples_list=counts)
    agent.train(_rounds([[0, 2, 2]], [[3.0, 3.0, 3.0]]))
    np.testing.assert_array_equal(counts, [1, 0, 2])
    np.testing.assert_array_equal(agent.num_samples, [1, 0, 2])
    with pytest.raises(ValueError, match="num_samples_list: got 2 variables"):
        _agent(num_samples_list=counts[:2])


def test_losses_of_tensorflow_1_are_applied_to_each_row():
    agent = _agent(error_loss_fn=tf.compat.v1.losses.absolute_difference)
    weights = tf.constant([[1.0, 4.0]])
    info = agent.loss(_rounds([[0, 2]], [[3.0, 2.5]]), weights)
    assert float(info.loss) == pytest.approx((2 + 4 * 0.5) / 2)


def test_emit_policy_info_may_have_the_log_probability():
    agent = _agent(
        kind=agents.NeuralBoltzmannAgent, emit_policy_info=["log_probability"]
    )
    step = agent.policy.action(ts.restart(tf.zeros([4, 2]), batch_size=4), seed=1)
    exact = np.exp([1.0, 2.0, 3.0]) / np.exp([1.0, 2.0, 3.0]).sum()
    found = np.exp(step.info.log_probability)
    np.testing.assert_allclose(found, exact[step.action.numpy()], rtol=1e-5)


def test_a_temperature_of_0_chooses_the_largest():
    agent = _agent(kind=agents.NeuralBoltzmannAgent, temperature=0.0)
    step = agent.policy.action(ts.restart(tf.zeros([8, 2]), batch_size=8), seed=1)
    np.testing.assert_array_equal(step.action, [2] * 8)
