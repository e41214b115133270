"""Constraints: what is feasible, what they learn, and that some arm stays."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.bandits import bandit_data as data
from tfrl.bandits import agents, metrics
from tfrl.bandits.policies import constraints, loss_utils
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

SPECS = data.time_step_spec(2), data.action_spec(3)
X = tf.zeros([2, 2])
_constant = functools.partial(data.constant_network, 2)


class _Share(constraints.BaseConstraint):
    """Each arm is feasible with a probability of its own."""

    def __init__(self, *probabilities):
        super().__init__(*SPECS)
        self._probabilities = tf.constant(probabilities)

    def __call__(self, observation, actions=None):
        return tf.repeat(self._probabilities[tf.newaxis], observation.shape[0], axis=0)


@pytest.mark.parametrize(
    ("quantile", "expected"), [(0.5, (1.0, 0.5)), (0.9, (1.8, 0.1))]
)
def test_the_pinball_loss(quantile, expected):
    loss = loss_utils.pinball_loss(
        [3.0, 1.0], [1.0, 2.0], reduction="none", quantile=quantile
    )
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    mean = loss_utils.pinball_loss([3.0, 1.0], [1.0, 2.0], quantile=quantile)
    assert float(mean) == pytest.approx(sum(expected) / 2)


KINDS = {
    "absolute": (
        lambda net: constraints.AbsoluteConstraint(*SPECS, net, absolute_value=1.5),
        [0, 1, 1],
    ),
    "quantile": (
        lambda net: constraints.QuantileConstraint(
            *SPECS, net, comparator_fn=tf.less, quantile_value=2.5
        ),
        [1, 1, 0],
    ),
    "relative": (
        lambda net: constraints.RelativeConstraint(
            *SPECS,
            net,
            margin=0.25,
            baseline_action_fn=lambda x: tf.ones(x.shape[0], tf.int32),
        ),
        [0, 1, 1],
    ),
    "relative quantile": (
        lambda net: constraints.RelativeQuantileConstraint(
            *SPECS, net, comparator_fn=tf.less_equal
        ),
        [1, 0, 0],
    ),
    "neural": (lambda net: constraints.NeuralConstraint(*SPECS, net), [1, 1, 1]),
}


@pytest.mark.parametrize("name", KINDS)
def test_feasible_arms_of_predictions_1_2_3(name):
    make, expected = KINDS[name]
    np.testing.assert_array_equal(make(_constant(1.0, 2.0, 3.0))(X), [expected] * 2)


def test_a_quantile_is_learned():
    constraint = KINDS["quantile"][0](_constant(1.0, 2.0, 3.0))
    loss = constraint.compute_loss(X, [0, 2], [3.0, 2.0], weights=[1.0, 3.0])
    assert float(loss) == pytest.approx((0.5 * 2 + 3 * 0.5 * 1) / 2)


def test_probabilities_multiply_and_the_seed_decides():
    own = [_Share(0.5, 1.0, 0.2), _Share(0.5, 1.0, 0.5)]
    allowed = tf.ones([4000, 3], tf.bool)
    x = tf.zeros([4000, 2])
    found = constraints.feasible_arms(x, own, allowed, tf.constant([1, 2], tf.int64))
    share = tf.reduce_mean(tf.cast(found, tf.float32), axis=0)
    np.testing.assert_allclose(share, [0.25, 1.0, 0.1], atol=0.03)
    again = constraints.feasible_arms(x, own, allowed, tf.constant([1, 2], tf.int64))
    np.testing.assert_array_equal(found, again)


def test_without_a_feasible_arm_the_users_mask_stays():
    mask = tf.constant([[1, 0, 1], [0, 1, 0]])
    found = constraints.construct_mask_from_multiple_sources(
        (X, mask), lambda pair: pair, [_Share(0.0, 1.0, 0.0)], 3, seed=0
    )
    np.testing.assert_array_equal(found, [[1, 0, 1], [0, 1, 0]])
    assert (
        constraints.construct_mask_from_multiple_sources(X, None, (), 3, seed=0) is None
    )


def test_an_agent_learns_its_constraint_and_its_policy_keeps_it():
    constraint = constraints.AbsoluteConstraint(
        *SPECS, _constant(0.0, 1.0, 1.0), absolute_value=0.5
    )
    spec = {
        "reward": tf.TensorSpec([], tf.float32),
        "constraint": tf.TensorSpec([1], tf.float32),
    }
    specs = ts.time_step_spec(SPECS[0].observation, spec), SPECS[1]
    agent = agents.GreedyRewardPredictionAgent(
        *specs,
        _constant(3.0, 1.0, 2.0),
        keras.optimizers.SGD(0.5),
        constraints=[constraint],
        emit_log_probability=True,
    )
    start = ts.restart(X, 2, specs[0].reward)
    step = agent.policy.action(start)
    np.testing.assert_array_equal(step.action, 2)
    np.testing.assert_array_equal(step.info.log_probability, 0)
    frames = data.experience(np.zeros([1, 2, 2], np.float32), [[0, 0]], [[3.0, 3.0]])
    frames = frames._replace(
        reward={"reward": frames.reward, "constraint": tf.constant([[[1.0], [1.0]]])},
        policy_info=tf.nest.map_structure(
            lambda spec: tf.zeros([1, 2, *spec.shape], spec.dtype),
            agent.policy.info_spec,
        ),
    )
    info = agent.train(frames)
    # The reward is right, and the constraint's number moves by 0.5 * 2 * (1 - 0).
    assert float(info.loss) == pytest.approx(1.0)
    np.testing.assert_allclose(constraint.constraint_network.variables[1], [1, 1, 1])
    np.testing.assert_array_equal(agent.policy.action(start).action, 0)


def test_violations_are_counted():
    metric = metrics.ConstraintViolationsMetric(_Share(0.0, 1.0, 0.25))
    metric(data.experience(np.zeros([4, 2], np.float32), [0, 1, 1, 2], [0.0] * 4))
    assert float(metric.result()) == pytest.approx(1.75 / 4)


def test_padding_counts_as_forbidden():
    spec = data.per_arm_spec(2, 2, 3, has_number=True).observation
    observation = tensor_spec.zero_spec_nest(spec, [2]) | {
        "num_actions": tf.constant([1, 3])
    }
    found = constraints.construct_mask_from_multiple_sources(observation, None, (), 3)
    np.testing.assert_array_equal(found, [[1, 0, 0], [1, 1, 1]])
