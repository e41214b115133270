"""Dropout and bootstrapped ensembles: a network is drawn for each row."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.bandits import bandit_data as data
from tfrl import testing, train
from tfrl.bandits import agents, environments, metrics
from tfrl.bandits.agents import dropout_thompson_sampling_agent
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

SPECS = data.time_step_spec(2), data.action_spec(3)


def _dropout(rate=0.5, **kwargs):
    return agents.DropoutThompsonSamplingAgent(
        *SPECS, keras.optimizers.SGD(0.1), rate, (8, 8), seed=0, **kwargs
    )


def _bootstrapped(**kwargs):
    return agents.BootstrappedAgent(
        *SPECS, keras.optimizers.SGD(0.1), (8,), num_heads=5, seed=0, **kwargs
    )


def _start(number):
    return ts.restart(tf.ones([number, 2]), batch_size=number)


def _rounds(number=40):
    x, action, reward = data.rows(number, 2, 3)
    return x, action, reward


def _frames(x, action, reward):
    return data.experience(x[np.newaxis], action[np.newaxis], reward[np.newaxis])


def test_each_row_and_seed_has_a_mask_of_its_own():
    policy = _dropout(emit_policy_info=("predicted_rewards_mean",)).policy
    first, again, other = (
        policy.action(_start(50), seed=seed).info.predicted_rewards_mean.numpy()
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
    assert len(np.unique(first[:, 0])) > 10


def test_dropout_keeps_the_mean_of_a_linear_top_layer():
    agent = _dropout(0.3)
    network = agent.policy.reward_network
    x = tf.ones([20_000, 2])
    drawn = network.draw(x, tf.constant([3, 4], tf.int64)).numpy()
    exact, _ = network(x[:1])
    deviation = drawn.std(axis=0) / np.sqrt(20_000)
    assert (np.abs(drawn.mean(axis=0) - exact[0]) < 5 * deviation).all()


def test_a_rate_may_be_a_function():
    rate = tf.Variable(0.0)
    agent = _dropout(lambda: rate, emit_policy_info=("predicted_rewards_mean",))
    step = agent.policy.action(_start(50), seed=1)
    assert np.std(step.info.predicted_rewards_mean[:, 0]) < 1e-5
    rate.assign(0.5)
    step = agent.policy.action(_start(50), seed=1)
    assert np.std(step.info.predicted_rewards_mean[:, 0]) > 0.1


def test_dropout_has_no_probabilities():
    with pytest.raises(ValueError, match="emit_log_probability: got True"):
        _dropout(emit_log_probability=True)


def test_dropout_can_learn_variances():
    agent = _dropout(heteroscedastic=True)
    assert np.isfinite(agent.train(_frames(*_rounds())).loss)


def test_bootstrapped_probabilities_are_shares_of_networks():
    agent = _bootstrapped(emit_log_probability=True)
    rewards, _ = agent.policy._ensemble(tf.ones([1, 2]))
    share = np.bincount(rewards[0].numpy().argmax(axis=1), minlength=3) / 5
    exact = agent.policy.distribution(_start(1)).action.probs_parameter().numpy()[0]
    np.testing.assert_allclose(exact, share, atol=1e-6)
    step = agent.policy.action(_start(3000), seed=2)
    action = step.action.numpy()
    np.testing.assert_allclose(
        np.bincount(action, minlength=3) / 3000, share, atol=0.04
    )
    np.testing.assert_allclose(
        np.exp(step.info.log_probability), share[action], rtol=1e-5
    )


def test_masked_arms_have_probability_0():
    mask = tensor_spec.BoundedTensorSpec([3], tf.int32, 0, 1)
    spec = ts.time_step_spec((tf.TensorSpec([2], tf.float32), mask))
    agent = agents.BootstrappedAgent(
        spec, SPECS[1], None, (4,), 5, lambda pair: pair, seed=0
    )
    allowed = tf.constant([[0, 1, 0], [0, 0, 0]])
    start = ts.restart((tf.ones([2, 2]), allowed), batch_size=2)
    np.testing.assert_array_equal(agent.policy.action(start, seed=0).action, [1, -1])
    exact = agent.policy.distribution(start).action.probs_parameter()
    np.testing.assert_allclose(exact[0], [0, 1, 0], atol=1e-6)
    # No arm is more probable than others, as in other policies.
    np.testing.assert_allclose(exact[1], [1 / 3] * 3, rtol=1e-6)


def test_poisson_numbers():
    numbers = dropout_thompson_sampling_agent.poisson(
        tf.constant([5, 6], tf.int64), [100_000]
    )
    counts = np.bincount(numbers.numpy().astype(int), minlength=4)[:4] / 100_000
    np.testing.assert_allclose(counts, np.exp(-1) / [1, 1, 2, 6], atol=0.005)


def test_the_loss_in_training_counts_rows_by_their_poisson_numbers():
    agent = _bootstrapped()
    x, action, reward = _rounds()
    rewards, _ = agent.policy._ensemble(tf.constant(x))
    errors = (rewards.numpy()[np.arange(40), :, action] - reward[:, None]) ** 2
    info = agent.loss(_frames(x, action, reward))
    assert float(info.loss) == pytest.approx(errors.mean(), rel=1e-5)
    numbers = dropout_thompson_sampling_agent.poisson(
        tf.constant([0, 0], tf.int64), [40, 5]
    ).numpy()
    info = agent.train(_frames(x, action, reward))
    assert float(info.loss) == pytest.approx((errors * numbers).mean(), rel=1e-5)


MAKERS = {"dropout": _dropout, "bootstrapped": _bootstrapped}


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_compiled_they_learn(name):
    # On the wheel dropout explores too little, as Riquelme et al. (2018) found.
    problem = "LinearBandit-v0" if name == "dropout" else "WheelBandit-v0"
    bandit = environments.load(problem, 16, seed=0)
    specs = bandit.time_step_spec(), bandit.action_spec()
    optimizer = keras.optimizers.Adam(0.01)
    if name == "dropout":
        agent = agents.DropoutThompsonSamplingAgent(
            *specs, optimizer, 0.1, (32, 32), seed=0
        )
    else:
        agent = agents.BootstrappedAgent(*specs, optimizer, (32, 32), seed=0)
    regret = metrics.CumulativeRegretMetric(bandit)
    loop = train.OnPolicyLoop(
        bandit, agent, [regret], collect_steps_per_iteration=4, seed=0, jit_compile=True
    )
    loop.run(100)
    first = float(regret.result())
    loop.run(900)
    assert (float(regret.result()) - first) / 9 < first / 2


@pytest.mark.slow
class TestConformanceOfDropout(testing.AgentConformance):
    def make_agent(self):
        return _dropout()


@pytest.mark.slow
class TestConformanceOfBootstrapped(testing.AgentConformance):
    def make_agent(self):
        return _bootstrapped()
