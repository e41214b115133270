"""Neural LinUCB: its two phases, by hand and against linear regression."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.bandits import bandit_data as data
from tests.pairs import some_slow
from tfrl import networks, testing, train
from tfrl.bandits import agents, environments, metrics, policies
from tfrl.bandits import networks as bandit_networks
from tfrl.policies.utils import BanditPolicyType
from tfrl.trajectories import time_step as ts

SPECS = data.time_step_spec(4), data.action_spec(3)


def _encoder(seed=0):
    layer = keras.layers.Dense(
        5,
        "tanh",
        kernel_initializer=keras.initializers.GlorotUniform(seed),
    )
    return networks.Sequential([layer], input_spec=SPECS[0].observation)


def _agent(steps, **kwargs):
    kwargs = {"seed": 0, "optimizer": keras.optimizers.SGD(0.1)} | kwargs
    return agents.NeuralLinUCBAgent(*SPECS, _encoder(), steps, 5, **kwargs)


def _rounds(part=slice(None), number=40):
    x, action, reward = (each[part] for each in data.rows(number, 4, 3))
    return data.experience(x[np.newaxis], action[np.newaxis], reward[np.newaxis])


def test_later_rows_change_linear_models_of_encodings():
    agent = _agent(0, tikhonov_weight=0.5)
    weights = tf.constant(np.random.default_rng(1).uniform(size=[1, 40]), tf.float32)
    x, action, reward = data.rows(40, 4, 3)
    encoded = _encoder()(tf.constant(x))[0].numpy().astype(np.float64)
    w = weights.numpy()[0]
    info = agent.train(_rounds(), weights)
    assert float(info.loss) == pytest.approx((w * reward**2).mean(), rel=1e-5)
    for a in range(3):
        own = encoded[action == a] * np.sqrt(w[action == a])[:, None]
        matrix = own.T @ own + 0.5 * np.eye(5)
        vector = encoded[action == a].T @ (w * reward)[action == a]
        np.testing.assert_allclose(agent.data_vector[a], vector, rtol=1e-5)
        np.testing.assert_allclose(
            agent._variable_collection.theta[a],
            np.linalg.solve(matrix, vector),
            rtol=1e-4,
        )
    np.testing.assert_allclose(
        agent.num_samples, [w[action == a].sum() for a in range(3)], rtol=1e-5
    )


def test_at_first_the_network_and_the_reward_layer_learn():
    agent = _agent(3)
    kernel = agent._reward_layer.variables[0]
    x, action, reward = data.rows(40, 4, 3)
    before = kernel.numpy()
    encoded = _encoder()(tf.constant(x))[0].numpy()
    error = (encoded @ before)[np.arange(40), action] - reward
    info = agent.train(_rounds())
    assert float(info.loss) == pytest.approx((error**2).mean(), rel=1e-5)
    slope = encoded.T @ (2 / 40 * error[:, None] * np.eye(3)[action])
    np.testing.assert_allclose(kernel, before - 0.1 * slope, rtol=1e-4, atol=1e-6)
    assert not np.any(agent.cov_matrix)


@pytest.mark.parametrize("compiles", some_slow([False, True], fast=[True]))
def test_the_phase_changes_after_the_number_of_steps(compiles):
    agent = _agent(2)
    step = tf.function(agent.train, autograph=False) if compiles else agent.train
    phases = []
    for _ in range(3):
        step(_rounds())
        phases.append(bool(agent.actions_from_reward_layer))
    assert phases == [True, False, False]
    # The network stays as it is, and the models have the last call's rows alone.
    assert sum(map(float, agent.num_samples)) == 40
    assert int(agent.train_step_counter) == 3


def test_the_given_counter_counts_and_a_checkpoint_has_the_phase():
    counter = tf.Variable(7, dtype=tf.int64)
    agent = _agent(8, train_step_counter=counter)
    agent.train(_rounds())
    assert int(counter) == 8
    assert any(v is agent.actions_from_reward_layer for v in agent.variables)


def test_forgetting_does_not_depend_on_how_rows_are_divided():
    at_once, divided = _agent(0, gamma=0.9), _agent(0, gamma=0.9)
    at_once.train(_rounds())
    for i in (0, 20):
        divided.train(_rounds(slice(i, i + 20)))
    np.testing.assert_allclose(at_once.cov_matrix, divided.cov_matrix, atol=1e-5)
    # Of an arm without rows nothing is lost.
    before = divided.cov_matrix[1]
    divided.train(_rounds(data.rows(40, 4, 3)[1] == 0))
    np.testing.assert_array_equal(before, divided.cov_matrix[1])


def _start(number):
    return ts.restart(tf.ones([number, 4]), batch_size=number)


def test_epsilon_explores_in_the_first_phase_alone():
    agent = _agent(
        1,
        epsilon_greedy=0.6,
        emit_policy_info=("bandit_policy_type",),
        emit_log_probability=True,
    )
    step = agent.policy.action(_start(2000), seed=1)
    exact = agent.policy.distribution(_start(1)).action.probs_parameter().numpy()[0]
    found = np.bincount(step.action, minlength=3) / 2000
    np.testing.assert_allclose(sorted(exact), [0.2, 0.2, 0.6], rtol=1e-5)
    np.testing.assert_allclose(found, exact, atol=0.04)
    kinds = step.info.bandit_policy_type.numpy()
    assert (kinds == BanditPolicyType.UNIFORM).mean() == pytest.approx(0.6, abs=0.04)
    agent.actions_from_reward_layer.assign(False)
    action = agent.policy.action(_start(2000), seed=1).action.numpy()
    assert (action == action[0]).all()


def test_alpha_may_be_a_variable():
    alpha = tf.Variable(0.0)
    agent = _agent(0, alpha=alpha, emit_policy_info=("predicted_rewards_optimistic",))
    before = agent.policy.action(_start(1)).info.predicted_rewards_optimistic
    np.testing.assert_array_equal(before, 0)
    alpha.assign(2.0)
    after = agent.policy.action(_start(1)).info.predicted_rewards_optimistic
    encoded = _encoder()(tf.ones([1, 4]))[0].numpy()
    expected = np.full([1, 3], 2 * np.linalg.norm(encoded))
    np.testing.assert_allclose(after, expected, rtol=1e-5)


def test_an_encoder_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"encoding_network: got output of shape"):
        agents.NeuralLinUCBAgent(*SPECS, _encoder(), 1, 6, None)


@pytest.mark.slow
def test_compiled_it_learns_arms_with_features():
    bandit = environments.load("PaddedArmsBandit-v0", 8, seed=0)
    encoder = bandit_networks.create_feed_forward_common_tower_network(
        bandit.observation_spec(), (8,), (8,), (8,), output_dim=8, seed=0
    )
    agent = agents.NeuralLinUCBAgent(
        bandit.time_step_spec(),
        bandit.action_spec(),
        encoder,
        100,
        8,
        keras.optimizers.Adam(0.01),
        alpha=0.1,
        epsilon_greedy=0.2,
        accepts_per_arm_features=True,
        seed=0,
    )
    regret = metrics.CumulativeRegretMetric(bandit)
    loop = train.OnPolicyLoop(
        bandit, agent, [regret], collect_steps_per_iteration=2, seed=0, jit_compile=True
    )
    loop.run(50)
    first = float(regret.result())
    loop.run(350)
    assert (float(regret.result()) - first) / 7 < first / 2
    assert float(agent.num_samples[0]) == 300 * 16


@pytest.mark.slow
class TestConformance(testing.AgentConformance):
    def make_agent(self):
        return _agent(2)


@pytest.mark.parametrize("is_first", [False, True])
def test_a_policy_of_sums_chooses_as_the_agents_own(is_first):
    agent = _agent(int(is_first), alpha=0.5)
    agent.train(_rounds())
    agent.actions_from_reward_layer.assign(is_first)
    own = agent.policy
    made = policies.NeuralLinUCBPolicy(
        agent._encoding_network,
        5,
        agent._reward_layer,
        0.0,
        is_first,
        agent.cov_matrix,
        agent.data_vector,
        agent.num_samples,
        agent.time_step_spec,
        0.5,
    )
    step = ts.restart(tf.constant(data.rows(20, 4, 3, seed=2)[0]), batch_size=20)
    np.testing.assert_array_equal(made.action(step).action, own.action(step).action)
    assert made.action_spec.maximum == 2


@pytest.mark.parametrize("from_rewards", [True, False])
def test_a_policy_of_arms_with_features_chooses_among_all_of_them(from_rewards):
    spec = data.per_arm_spec(2, 3, 4)
    tower = bandit_networks.create_feed_forward_common_tower_network(
        spec.observation, (3,), (3,), (3,), output_dim=5
    )
    vector = np.arange(5.0) - 2
    policy = policies.NeuralLinUCBPolicy(
        tower,
        5,
        keras.layers.Dense(1, kernel_initializer=lambda *_, **__: vector[:, None]),
        epsilon_greedy=0.0,
        actions_from_reward_layer=tf.constant(from_rewards),
        cov_matrix=[tf.eye(5, dtype=tf.float64)],
        data_vector=[tf.constant(vector)],
        num_samples=[tf.constant(1)],
        time_step_spec=spec,
        alpha=0.0,
        accepts_per_arm_features=True,
        tikhonov_weight=0.0,
    )
    observation = tf.nest.map_structure(
        lambda x: tf.random.stateless_normal([6, *x.shape], [1, 2]), spec.observation
    )
    expected = tower(observation)[0].numpy() @ vector  # The inverse of one is one.
    action = policy.action(ts.restart(observation, batch_size=6)).action
    assert policy.action_spec.maximum == 3
    np.testing.assert_array_equal(action, expected.argmax(axis=1))
    assert len(set(action.numpy())) > 1
