"""IQN against QR-DQN at fixed fractions, and the fractions that it draws."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.agents.dqn.test_qr_dqn_agent import expected, experience
from tfrl import agents, networks
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
SPEC = tf.TensorSpec([2, 3], tf.float32)
MIDDLES = (np.arange(3) + 0.5) / 3


class Interpolating(networks.network.Network):
    """Interpolates the observation's quantiles, `[B, 2, 3]`, at any fractions."""

    def __init__(self, input_tensor_spec, name=None):
        super().__init__(input_tensor_spec, name=name)
        self._scale = keras.layers.EinsumDense(
            "...i,ij->...j", 3, kernel_initializer="identity"
        )

    def call(self, observation, fractions=None):
        if fractions is None:
            fractions = tf.tile(
                tf.constant([MIDDLES], tf.float32), [tf.shape(observation)[0], 1]
            )
        # 1 at a middle's own fraction, 0 at the others'.
        weights = tf.nn.relu(1 - abs(3 * fractions[..., tf.newaxis] - 3 * MIDDLES))
        return tf.einsum("bai,bni->ban", self._scale(observation), weights), ()


def make(**kwargs):
    agent = agents.IqnAgent(
        ts.time_step_spec(SPEC),
        ACTION,
        Interpolating(SPEC),
        keras.optimizers.SGD(0.1),
        gamma=0.5,
        **{"num_quantiles": 3, "num_target_quantiles": 3, "seed": 1, **kwargs},
    )
    agent.initialize()
    return agent


def test_at_the_middles_it_is_qr_dqn():
    agent, batch = make(), experience()
    agent._fractions = agent._target_fractions = lambda batch_size: tf.tile(
        tf.constant([MIDDLES], tf.float32), [batch_size, 1]
    )
    extra = agent.loss(batch).extra
    td_loss, td_error = expected(batch)
    np.testing.assert_allclose(extra.td_loss, td_loss, rtol=1e-5)
    np.testing.assert_allclose(extra.td_error, td_error, rtol=1e-5, atol=1e-6)


def test_the_fractions_are_uniform_and_new_in_each_update():
    agent = make(num_quantiles=64, num_target_quantiles=64)
    draws = []
    for draw in (agent._fractions, agent._target_fractions):
        for counter in (0, 1):
            agent.train_step_counter.assign(counter)
            draws.append(draw(500).numpy())
    for draw in draws:
        # The deviation of a mean of 32,000 uniform numbers is 0.0016.
        np.testing.assert_allclose(draw.mean(), 0.5, atol=0.01)
        np.testing.assert_allclose(draw.std(), 12**-0.5, atol=0.01)
        assert 0 <= draw.min() < 0.001
        assert 0.999 < draw.max() < 1
    for i, one in enumerate(draws):
        for other in draws[:i]:
            assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.03
    agent.train_step_counter.assign(0)
    np.testing.assert_array_equal(agent._fractions(500), draws[0])


def test_a_seed_for_one_update_is_refused():
    with pytest.raises(TypeError, match="seed: got 5, expected None, since IqnAgent"):
        make().train(experience(), seed=5)


def test_the_predictions_and_their_levels_have_the_same_fractions():
    agent, batch = make(num_quantiles=5), experience()
    predicted = agent._compute_q_values(batch.time_step, batch.action_step.action)
    output, _ = agent._q_network(
        batch.time_step.observation, fractions=agent._levels(predicted)
    )
    np.testing.assert_array_equal(
        predicted, output.numpy()[np.arange(4), batch.action_step.action]
    )


def test_policies_act_by_evenly_spaced_fractions():
    agent = make(epsilon_greedy=0.0)
    observations = experience().time_step.observation
    best = np.argmax(observations.numpy().mean(axis=-1), axis=-1)
    for _ in range(3):
        action = agent.collect_policy.action(ts.restart(observations, 4)).action
        np.testing.assert_array_equal(action, best)


def test_the_seed_is_among_the_variables():
    agent = make(seed=7)
    assert 7 in [v.numpy() for v in agent.variables() if v.dtype == tf.int64]


def test_wrong_arguments():
    with pytest.raises(ValueError, match="num_quantiles"):
        make(num_quantiles=0)
    with pytest.raises(ValueError, match="num_target_quantiles"):
        make(num_target_quantiles=0)
