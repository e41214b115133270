"""Several objectives: their losses by hand, and the largest scalarized reward."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.bandits import bandit_data as data
from tfrl import testing
from tfrl.bandits import agents, multi_objective
from tfrl.trajectories import time_step as ts
from tfrl.utils import common

SPECS = (
    ts.time_step_spec(tf.TensorSpec([2], tf.float32), tf.TensorSpec([2], tf.float32)),
    data.action_spec(3),
)
_constant = functools.partial(data.constant_network, 2)


def _agent(scalarizer=None, **kwargs):
    return agents.GreedyMultiObjectiveNeuralAgent(
        *SPECS,
        scalarizer or multi_objective.LinearScalarizer([1.0, 1.0]),
        [
            (_constant(1.0, 2.0, 3.0), common.element_wise_squared_loss),
            (_constant(5.0, 1.0, 2.0), common.element_wise_huber_loss),
        ],
        keras.optimizers.SGD(0.5),
        **kwargs,
    )


def _start(number):
    return ts.restart(tf.zeros([number, 2]), number, SPECS[0].reward)


def test_the_largest_scalarized_reward_is_chosen():
    fields = (
        "predicted_rewards_mean",
        "multiobjective_scalarized_predicted_rewards_mean",
    )
    agent = _agent(emit_policy_info=fields)
    step = agent.policy.action(_start(2))
    np.testing.assert_array_equal(step.action, 0)
    np.testing.assert_allclose(
        step.info.predicted_rewards_mean, [[[1, 2, 3], [5, 1, 2]]] * 2
    )
    np.testing.assert_allclose(
        step.info.multiobjective_scalarized_predicted_rewards_mean, [[6, 3, 5]] * 2
    )


def test_parameters_of_each_row_change_the_choice():
    agent = _agent()
    agent.policy.action(_start(2))
    agent.policy.scalarizer.set_parameters(weights=[[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(agent.policy.action(_start(2)).action, [2, 0])


def test_the_loss_is_the_sum_of_the_objectives():
    agent = _agent(
        laplacian_matrix=np.diag([1.0, 1.0, 0.0]),
        laplacian_smoothing_weights=[0.1, 0.2],
    )
    frames = data.experience(
        np.zeros([1, 2, 2], np.float32), [[0, 1]], [[[4.0, 5.0], [2.0, 4.0]]]
    )
    frames = frames._replace(reward=tf.constant([[[4.0, 5.0], [2.0, 4.0]]]))
    penalty = 0.1 * (1 + 4) + 0.2 * (25 + 1)
    info = agent.train(frames, tf.constant([[2.0, 1.0]]))
    expected = (2 * (9 + penalty) + 2.5 + penalty) / 2
    assert float(info.loss) == pytest.approx(expected)


def test_fewer_than_two_objectives_are_refused():
    with pytest.raises(ValueError, match="objective_networks: got 1"):
        agents.GreedyMultiObjectiveNeuralAgent(
            *SPECS,
            multi_objective.LinearScalarizer([1.0, 1.0]),
            [(_constant(1.0, 2.0, 3.0), common.element_wise_squared_loss)],
            None,
        )


def test_as_many_rewards_as_networks_are_needed():
    specs = ts.time_step_spec(tf.TensorSpec([2]), tf.TensorSpec([3])), SPECS[1]
    agent = agents.GreedyMultiObjectiveNeuralAgent(
        *specs,
        multi_objective.LinearScalarizer([1.0, 1.0]),
        [(_constant(1.0, 2.0, 3.0), common.element_wise_squared_loss)] * 2,
        None,
    )
    rounds = data.experience(np.zeros([1, 1, 2], np.float32), [[0]], [[[1.0] * 3]])
    with pytest.raises(
        ValueError, match=r"reward: got shape \(1, 3\), expected \[n, 2"
    ):
        agent.loss(rounds)


@pytest.mark.slow
class TestConformance(testing.AgentConformance):
    def make_agent(self):
        return _agent()
