"""The public parts of REINFORCE's loss, called on their own."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.agents.reinforce import reinforce_agent
from tfrl.networks import actor_distribution_network, sequential
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

FIRST, MID, LAST = 0, 1, 2
OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
PROBS = np.array([[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]], np.float32)
ENTROPY = -np.sum(PROBS * np.log(PROBS), axis=-1)


def make(**kwargs):
    actor = actor_distribution_network.ActorDistributionNetwork(
        OBSERVATION, ACTION, fc_layer_params=(), seed=0
    )
    return reinforce_agent.ReinforceAgent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        actor,
        keras.optimizers.SGD(0.1),
        **kwargs,
    )


def value_network():
    return sequential.Sequential([keras.layers.Dense(1)], input_spec=OBSERVATION)


def shaped(x, outer):
    return tf.reshape(tf.constant(x), [*outer, *np.shape(x)[1:]])


OUTER = pytest.mark.parametrize("outer", [[3], [3, 1], [1, 3]])


@OUTER
def test_policy_gradient_loss(outer):
    loss = make().policy_gradient_loss(
        tfp.distributions.Categorical(probs=shaped(PROBS, outer)),
        actions=shaped([0, 0, 1], outer),
        is_boundary=shaped([False, False, True], outer),
        returns=shaped([2.0, 1.0, 5.0], outer),
        num_episodes=2,
    )
    # The last frame is a boundary.
    expected = -(2 * np.log(0.8) + 1 * np.log(0.3)) / 2
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_policy_gradient_loss_with_weights():
    loss = make().policy_gradient_loss(
        tfp.distributions.Categorical(probs=PROBS),
        tf.constant([0, 0, 1]),
        tf.fill([3], False),
        tf.ones([3]),
        num_episodes=1,
        weights=tf.constant([1.0, 0.0, 0.5]),
    )
    np.testing.assert_allclose(loss, -(np.log(0.8) + 0.5 * np.log(0.5)), rtol=1e-5)


@OUTER
@pytest.mark.parametrize("weights", [None, [1.0, 0.0, 0.5]])
def test_entropy_regularization_loss(outer, weights):
    agent = make(entropy_regularization=0.1)
    loss = agent.entropy_regularization_loss(
        tfp.distributions.Categorical(probs=shaped(PROBS, outer)),
        None if weights is None else shaped(weights, outer),
    )
    expected = -0.1 * np.mean(ENTROPY * (1 if weights is None else weights))
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


@OUTER
def test_value_estimation_loss(outer):
    agent = make(value_network=value_network(), value_estimation_loss_coef=0.5)
    values, returns = shaped([1.0, 2.0, 3.0], outer), shaped([2.0, 2.0, 0.0], outer)
    loss = agent.value_estimation_loss(values, returns, num_episodes=2)
    np.testing.assert_array_equal(loss, 0.5 * (1 + 0 + 9) / 2)
    weighted = agent.value_estimation_loss(
        values, returns, num_episodes=1, weights=shaped([1.0, 1.0, 0.0], outer)
    )
    np.testing.assert_array_equal(weighted, 0.5)


@pytest.mark.parametrize("with_value_network", [False, True])
def test_total_loss_asks_the_advantage_function_once(with_value_network):
    calls = []

    def advantage(returns, values):
        calls.append(values is not None)
        return returns

    agent = make(
        value_network=value_network() if with_value_network else None,
        advantage_fn=advantage,
        normalize_returns=False,
        value_estimation_loss_coef=0.0,
    )
    frames = trajectory.Trajectory(
        step_type=tf.constant([[FIRST, MID, LAST]]),
        observation=tf.zeros([1, 3, 2]),
        action=tf.constant([[0, 1, 1]]),
        policy_info=(),
        next_step_type=tf.constant([[MID, LAST, FIRST]]),
        reward=tf.zeros([1, 3]),
        discount=tf.ones([1, 3]),
    )
    loss, extra = agent.total_loss(frames, tf.constant([[3.0, 1.0, 7.0]]), None)
    assert calls == [with_value_network]
    # The actor is undecided: each log-probability is -log 2.
    np.testing.assert_allclose(loss, (3 + 1) * np.log(2), rtol=1e-5)
    np.testing.assert_allclose(extra.policy_gradient_loss, loss, rtol=1e-6)


class Recording(reinforce_agent.ReinforceAgent):
    """Overrides every part with TF-Agents' arguments."""

    def policy_gradient_loss(
        self,
        actions_distribution,
        actions,
        is_boundary,
        returns,
        num_episodes,
        weights=None,
    ):
        self.returns = returns
        return tf.constant(1.0)

    def entropy_regularization_loss(self, actions_distribution, weights=None):
        return tf.constant(10.0)

    def value_estimation_loss(self, value_preds, returns, num_episodes, weights=None):
        return tf.constant(100.0)

    def total_loss(self, experience, returns, weights, training=False):
        info = super().total_loss(experience, returns, weights, training)
        return info._replace(loss=1000 + info.loss)


def episode(padding):
    """Two frames of an episode, then frames of zeros."""

    def row(values, dtype=tf.int32):
        return tf.constant([[*values, *[0] * padding]], dtype)

    return trajectory.Trajectory(
        step_type=row([FIRST, MID]),
        observation=tf.zeros([1, 2 + padding, 2]),
        action=row([0, 1]),
        policy_info=(),
        next_step_type=row([MID, LAST]),
        reward=row([1.0, 2.0], tf.float32),
        discount=row([0.0, 0.0], tf.float32),
    )


def test_overridden_parts_make_the_loss():
    actor = actor_distribution_network.ActorDistributionNetwork(
        OBSERVATION, ACTION, fc_layer_params=()
    )
    agent = Recording(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        actor,
        keras.optimizers.SGD(0.1),
        value_network=value_network(),
        normalize_returns=False,
        use_advantage_loss=False,
    )
    assert agent.loss(episode(0)).loss == 1111
    np.testing.assert_array_equal(agent.returns, [[1, 2]])
    # The mean is over all frames, half of which are padding.
    assert agent.loss(episode(2)).extra.entropy_regularization_loss == 20
