"""Metrics of bandits, against numbers by hand."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import drivers, environments, policies
from tfrl.bandits import environments as bandit_environments
from tfrl.bandits import metrics
from tfrl.trajectories import trajectory


def _frame(observation, action, reward):
    return trajectory.single_step(
        tf.constant(observation),
        tf.constant(action),
        (),
        tf.nest.map_structure(tf.constant, reward),
        tf.zeros(len(action)),
    )


FRAMES = (
    _frame([[1.0, 3.0], [2.0, 5.0]], [1, 0], [1.0, 2.0]),
    _frame([[4.0, 0.0], [0.0, 6.0]], [0, 1], [3.0, 3.0]),
)


def _result(metric, frame):
    metric(frame)
    return float(metric.result())


def test_regret_is_the_mean_over_the_last_rounds():
    # Baselines 3, 5 and then 4, 6; rewards 1, 2 and then 3, 3.
    metric = metrics.RegretMetric(lambda x: tf.reduce_max(x, axis=1))
    assert [_result(metric, frame) for frame in FRAMES] == [(2 + 3) / 2, (1 + 3) / 2]
    metric.reset()
    assert float(metric.result()) == 0.0


@pytest.mark.parametrize("name", ["RegretMetric", "SuboptimalArmsMetric"])
def test_a_baseline_is_asked_after_the_round_whose_reward_is_given(name):
    # An environment in Python knows its best arms for the round that it has taken.
    def baseline(observation):
        return tf.numpy_function(lambda: np.zeros(2, np.int32), [], tf.int32)

    call = tf.function(getattr(metrics, name)(baseline).call)
    graph = call.get_concrete_function(FRAMES[0]).graph
    [asked] = [op for op in graph.get_operations() if "PyFunc" in op.type]
    leaves = len(tf.nest.flatten(FRAMES[0]))
    given = tf.nest.pack_sequence_as(FRAMES[0], graph.inputs[:leaves])
    rewards = [leaf.op.name for leaf in tf.nest.flatten(given.reward)]
    assert [op.name for op in asked.control_inputs] == rewards


def test_regret_takes_the_reward_of_a_dictionary():
    metric = metrics.RegretMetric(lambda x: x[:, 0])
    reward = {"reward": [0.5, 1.5], "constraint": [9.0, 9.0]}
    metric(_frame([[1.0], [2.0]], [0, 0], reward))
    assert float(metric.result()) == 0.5


def test_suboptimal_arms_is_the_share_of_other_actions():
    metric = metrics.SuboptimalArmsMetric(lambda x: tf.argmax(x, axis=1))
    assert [_result(metric, frame) for frame in FRAMES] == [0.5, 0.0]


def test_distance_from_greedy_compares_estimates():
    metric = metrics.DistanceFromGreedyMetric(lambda x: x)
    assert [_result(metric, frame) for frame in FRAMES] == [1.5, 0.0]


def test_cumulative_regret_adds_up_the_regrets_of_the_environment():
    bandit = bandit_environments.load("BernoulliBandit-v0", 3, seed=0)
    metric = metrics.CumulativeRegretMetric(bandit)
    actions = []
    policy = policies.RandomTFPolicy(
        bandit.time_step_spec(), bandit.action_spec(), seed=0
    )
    observers = [metric, lambda frame: actions.append(frame.action.numpy())]
    drivers.DynamicStepDriver(bandit, policy, observers, num_steps=30).run()
    means = np.array([0.1, 0.5, 0.6, 0.4, 0.3])
    expected = (0.6 - means[np.array(actions)]).sum() / 3
    assert float(metric.result()) == pytest.approx(expected, rel=1e-5)


def test_an_environment_without_a_regret_is_refused():
    environment = environments.native.load("CartPole-v1")
    with pytest.raises(ValueError, match="use RegretMetric"):
        metrics.CumulativeRegretMetric(environment)
