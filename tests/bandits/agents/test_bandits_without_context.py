"""Exp3 and Thompson's sampling for Bernoulli rewards: exact sums, and no lock-in."""

import numpy as np
import pytest
import tensorflow as tf

from tests.bandits import bandit_data as data
from tfrl import testing, train
from tfrl.bandits import agents, policies
from tfrl.bandits.agents import bernoulli_thompson_sampling_agent
from tfrl.bandits.environments import problems
from tfrl.environments import native
from tfrl.policies.utils import PolicyInfo
from tfrl.trajectories import time_step as ts

SPECS = data.time_step_spec(1), data.action_spec(3)


def _rounds(action, reward, logs=None):
    x = np.ones([*np.shape(action), 1], np.float32)
    info = (
        PolicyInfo() if logs is None else PolicyInfo(log_probability=tf.constant(logs))
    )
    return data.experience(x, action, reward, info)


def _start(number):
    return ts.restart(tf.ones([number, 1]), batch_size=number)


def test_the_posterior_counts_rewards():
    agent = agents.BernoulliThompsonSamplingAgent(*SPECS)
    info = agent.train(_rounds([[0, 0, 2]], [[1.0, 0.25, 1.5]]))
    np.testing.assert_allclose(agent.alpha, [2.25, 1, 2])
    np.testing.assert_allclose(agent.beta, [1.75, 1, 1])
    assert float(info.loss) == pytest.approx(-2.75)
    assert int(agent.train_step_counter) == 1


def test_rounds_count_whose_time_steps_are_all_last():
    # A bandit's loop that never resets: FIRST, LAST, LAST; then a reset to FIRST.
    agent = agents.BernoulliThompsonSamplingAgent(*SPECS)
    frames = _rounds([[0, 1, 2]], [[1.0, 1.0, 1.0]])
    types = tf.constant([[0, 2, 2, 0]])
    agent.train(frames.replace(step_type=types[:, :3], next_step_type=types[:, 1:]))
    np.testing.assert_allclose(agent.alpha, [2, 2, 1])


def test_an_experience_without_rounds_is_refused():
    agent = agents.BernoulliThompsonSamplingAgent(*SPECS)
    empty = _rounds(np.zeros([2, 0]), np.zeros([2, 0]))
    with pytest.raises(ValueError, match=r"got frames \(2, 0\).*add_batch"):
        agent.train(empty)


def test_bernoulli_actions_have_the_probabilities_that_the_policy_tells():
    agent = agents.BernoulliThompsonSamplingAgent(*SPECS, emit_log_probability=True)
    logs = np.zeros([1, 4], np.float32)
    agent.train(_rounds([[0, 0, 1, 2]], [[1.0, 1.0, 0.0, 1.0]], logs))
    exact = agent.policy.distribution(_start(1)).action.probs_parameter().numpy()[0]
    action = agent.policy.action(_start(4_000), seed=0).action.numpy()
    found = np.bincount(action, minlength=3) / len(action)
    np.testing.assert_allclose(found, exact, atol=0.03)
    step = agent.policy.action(_start(5), seed=0)
    np.testing.assert_allclose(
        np.exp(step.info.log_probability), exact[step.action.numpy()], rtol=1e-3
    )


@pytest.mark.parametrize(
    "jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_thompsons_sampling_finds_the_best_arm(jit_compile):
    dynamics = problems.bernoulli([0.2, 0.5, 0.8])
    bandit = native.NativeEnvironment(dynamics, 4, seed=0)
    agent = agents.BernoulliThompsonSamplingAgent(
        bandit.time_step_spec(), bandit.action_spec(), seed=0
    )
    loop = train.OnPolicyLoop(
        bandit,
        agent,
        collect_steps_per_iteration=2,
        seed=0,
        jit_compile=jit_compile,
    )
    loop.run(100)
    counts = agent.alpha.numpy() + agent.beta.numpy() - 2
    assert counts.sum() == 800
    assert counts[2] > 600


def test_exp3_adds_unbiased_sums():
    agent = agents.Exp3Agent(*SPECS, learning_rate=0.1)
    logs = np.log(np.float32([[0.5, 0.25]]))
    agent.train(_rounds([[0, 1]], [[0.5, 0.0]], logs))
    # -(1 - 0.5) / 0.5, -(1 - 0) / 0.25 and 0.
    np.testing.assert_allclose(agent.weights, [-1.0, -4.0, 0.0])
    probabilities = agent.policy.distribution(_start(1)).action.probs_parameter()
    expected = np.exp([-0.1, -0.4, 0.0])
    np.testing.assert_allclose(probabilities[0], expected / expected.sum(), rtol=1e-5)


def test_the_expected_change_of_a_sum_does_not_depend_on_its_probability():
    means = np.array([0.2, 0.7, 0.5])
    for probability in ([0.01, 0.09, 0.9], [0.4, 0.3, 0.3]):
        expected = np.zeros(3)
        for arm, p in enumerate(probability):
            agent = agents.Exp3Agent(*SPECS, learning_rate=0.1)
            logs = np.log(np.float32([[p]]))
            agent.train(_rounds([[arm]], np.float32([[means[arm]]]), logs))
            weights = agent.weights.numpy()
            expected += p * (weights - weights[(arm + 1) % 3])
        np.testing.assert_allclose(expected, means - 1, rtol=1e-4)


def test_exp3_does_not_lock_on_to_the_worse_arm():
    bandit = native.NativeEnvironment(problems.bernoulli([0.3, 0.7]), 1, seed=0)
    agent = agents.Exp3Agent(
        bandit.time_step_spec(), bandit.action_spec(), learning_rate=0.05, seed=0
    )
    # As if the worse arm had been lucky for long.
    agent.weights.assign([0.0, -60.0])
    loop = train.OnPolicyLoop(
        bandit, agent, collect_steps_per_iteration=1, seed=0, jit_compile=True
    )
    loop.run(5000)
    assert agent.weights.numpy().argmax() == 1


class TestConformanceOfExp3(testing.AgentConformance):
    def make_agent(self):
        return agents.Exp3Agent(*SPECS, learning_rate=0.1, seed=0)


class TestConformanceOfBernoulli(testing.AgentConformance):
    def make_agent(self):
        return agents.BernoulliThompsonSamplingAgent(*SPECS, seed=0)


def test_a_collection_is_shared_and_checked():
    made = bernoulli_thompson_sampling_agent.BernoulliBanditVariableCollection(3)
    agent = agents.BernoulliThompsonSamplingAgent(*SPECS, made, batch_size=3)
    agent.train(_rounds([[0, 0, 2]], [[1.0, 0.25, 1.5]]))
    np.testing.assert_allclose(made.alpha, [2.25, 1, 2])
    with pytest.raises(TypeError, match="variable_collection: got a int"):
        agents.BernoulliThompsonSamplingAgent(*SPECS, 3)
    with pytest.raises(ValueError, match=r"alpha: got shape \(2,\), expected \(3,\)"):
        policies.BernoulliThompsonSamplingPolicy(*SPECS, [1.0, 1.0], [1.0, 1.0])


def test_exp3_by_hand():
    agent = agents.Exp3Agent(*SPECS, learning_rate=0.5)
    logs = np.log(np.float32([[0.5, 0.25, 0.5]]))
    agent.train(_rounds([[0, 1, 0]], [[1.0, 0.5, 0.0]], logs))
    # The largest sum is kept at 0.
    np.testing.assert_allclose(agent.weights, [-2, -2, 0], rtol=1e-6)
    agent.learning_rate = 0.25
    probabilities = agent.policy.distribution(_start(1)).action.probs_parameter()
    expected = np.exp([-0.5, -0.5, 0.0])
    np.testing.assert_allclose(probabilities[0], expected / expected.sum(), rtol=1e-6)
