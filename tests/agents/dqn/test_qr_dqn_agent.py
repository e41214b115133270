"""QR-DQN's loss against the paper's equations in NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents, networks
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
SPEC = tf.TensorSpec([2, 3], tf.float32)


class Identity(networks.network.Network):
    """Gives the observation as the quantiles, `[B, 2, 3]`, times a weight of 1."""

    def __init__(self, input_tensor_spec, name=None):
        super().__init__(input_tensor_spec, name=name)
        self._layer = keras.layers.Rescaling(1.0)
        self._scale = keras.layers.EinsumDense(
            "...i,ij->...j", 3, kernel_initializer="identity"
        )

    def call(self, observation):
        return self._scale(observation), ()


def make(**kwargs):
    agent = agents.QrDqnAgent(
        ts.time_step_spec(SPEC),
        ACTION,
        Identity(SPEC),
        keras.optimizers.SGD(0.1),
        gamma=0.5,
        **kwargs,
    )
    agent.initialize()
    return agent


def experience(seed=0):
    """A transition, a termination, a truncation and a boundary."""
    now, then = np.random.default_rng(seed).normal(0, 2, [2, 4, 2, 3]).astype("f4")
    return trajectory.Transition(
        ts.TimeStep(
            tf.constant([0, 1, 1, 2]), tf.zeros(4), tf.ones(4), tf.constant(now)
        ),
        policy_step.PolicyStep(tf.constant([0, 1, 1, 0])),
        ts.TimeStep(
            tf.constant([1, 2, 2, 0]),
            tf.constant([0.3, -1.7, 5.0, 7.0]),
            tf.constant([1.0, 0.0, 1.0, 1.0]),
            tf.constant(then),
        ),
    )


def expected(batch, kappa=1.0):
    """The loss and the error of each transition, in loops."""
    now, then = batch.time_step.observation, batch.next_time_step
    results = []
    for i in range(3):
        predicted = now[i, batch.action_step.action[i]].numpy()
        following = then.observation[i].numpy()
        best = following[np.argmax(following.mean(axis=1))]
        target = then.reward[i] + 0.5 * then.discount[i] * best
        loss = 0.0
        for k, theta in enumerate(predicted):
            for y in target.numpy():
                u = y - theta
                huber = u**2 / 2 if abs(u) <= kappa else kappa * (abs(u) - kappa / 2)
                loss += abs((k + 0.5) / 3 - (u < 0)) * huber / kappa / 3
        results.append((loss, np.mean(target) - predicted.mean()))
    return np.array([*results, (0, 0)]).T


@pytest.mark.parametrize("kappa", [1.0, 0.4])
def test_loss_is_the_quantile_huber_loss(kappa):
    batch = experience()
    loss, extra = make(huber_param=kappa).loss(batch)
    td_loss, td_error = expected(batch, kappa)
    np.testing.assert_allclose(extra.td_loss, td_loss, rtol=1e-5)
    np.testing.assert_allclose(extra.td_error, td_error, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(loss, td_loss.mean(), rtol=1e-5)


def test_with_double_q_the_online_network_chooses():
    batch = experience()
    agent = make(double_q=True)
    (kernel, *_), observations = agent._q_network.trainable_variables, batch[2]
    kernel.assign(-np.eye(3))
    following = agent._compute_next_q_values(observations, ())
    worst = np.argmin(observations.observation.numpy().mean(axis=-1), axis=-1)
    np.testing.assert_allclose(
        following, observations.observation.numpy()[np.arange(4), worst], rtol=1e-6
    )


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"shape \[B, n, m\], got .*QuantileQNetwork"):
        agents.QrDqnAgent(
            ts.time_step_spec(SPEC),
            ACTION,
            networks.QNetwork(SPEC, ACTION),
            keras.optimizers.SGD(0.1),
        )
    with pytest.raises(
        ValueError, match="td_errors_loss_fn: expected None, since QrDqn"
    ):
        make(td_errors_loss_fn=tf.math.squared_difference)
    with pytest.raises(ValueError, match="huber_param"):
        make(huber_param=-1.0)
