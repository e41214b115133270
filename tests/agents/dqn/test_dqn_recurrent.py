"""The loss of a recurrent Q-network against one worked in NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.agents.dqn.recurrent_by_hand import (
    ACTION,
    FIRST,
    LAST,
    MID,
    NEXT_STEP_TYPE,
    OBSERVATION,
    STEP_TYPE,
    frames,
    network,
    q_by_hand,
    returns_by_hand,
)
from tfrl.agents.dqn import dqn_agent
from tfrl.networks import Sequential
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import common

GAMMA = 0.8


def make(kind=dqn_agent.DqnAgent, **kwargs):
    return kind(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        network(1),
        kwargs.pop("optimizer", None) or keras.optimizers.SGD(0.1),
        target_q_network=network(2),
        gamma=GAMMA,
        td_errors_loss_fn=common.element_wise_squared_loss,
        **kwargs,
    )


def errors_by_hand(agent, data, begins, valid, double=False, n=1):
    data = tf.nest.map_structure(np.asarray, data)
    online, _ = q_by_hand(agent._q_network, data.observation, begins)
    target, _ = q_by_hand(agent._target_q_network, data.observation, begins)
    best = (online if double else target)[:, 1:].argmax(-1)
    following = np.take_along_axis(target[:, 1:], best[..., None], -1)[..., 0]
    taken = np.take_along_axis(online, data.action[..., None], -1)[..., 0]
    returns = returns_by_hand(data, following, valid, GAMMA, n)
    return np.where(valid, returns - taken[:, :-1], 0)


@pytest.mark.parametrize("kind", [dqn_agent.DqnAgent, dqn_agent.DdqnAgent])
def test_loss_matches_numpy(kind):
    agent = make(kind)
    data = frames(STEP_TYPE, NEXT_STEP_TYPE)
    valid = np.array(STEP_TYPE)[:, :-1] != LAST
    errors = errors_by_hand(
        agent,
        data,
        np.array(STEP_TYPE) == FIRST,
        valid,
        double=kind is dqn_agent.DdqnAgent,
    )
    info = agent.loss(data)
    np.testing.assert_allclose(info.extra.td_error, errors, atol=1e-5)
    np.testing.assert_allclose(info.extra.td_loss, (errors**2).sum(1), rtol=1e-4)
    np.testing.assert_allclose(info.loss, (errors**2).sum(1).mean(), rtol=1e-4)
    weighted = agent.loss(data, weights=tf.constant([1.0, 0.0, 2.0]))
    expected = ((errors**2).sum(1) * [1, 0, 2]).mean()
    np.testing.assert_allclose(weighted.loss, expected, rtol=1e-4)


@pytest.mark.parametrize("n", [2, 3, 9])
def test_n_step_returns_end_with_episodes_cuts_and_the_sequence(n):
    # The last row has a cut after its second frame.
    step_type = [*STEP_TYPE, [MID, MID, FIRST, MID, MID]]
    next_step_type = [*NEXT_STEP_TYPE, [MID, MID, MID, MID, MID]]
    agent = make(n_step_update=n)
    data = frames(step_type, next_step_type)
    valid = np.array(step_type)[:, :-1] != LAST
    valid[3, 1] = False
    begins = np.array(step_type) == FIRST
    errors = errors_by_hand(agent, data, begins, valid, n=n)
    np.testing.assert_allclose(agent.loss(data).extra.td_error, errors, atol=1e-5)


@pytest.mark.parametrize("after", [FIRST, MID])
def test_what_precedes_a_cut_is_masked_and_forgotten(after):
    # The frame at 2 does not follow the one at 1.
    step_type = [[MID, MID, after, MID, MID]]
    next_step_type = [[MID, LAST, MID, MID, MID]]
    agent = make()
    data = frames(step_type, next_step_type)
    begins = np.array([[False, False, True, False, False]])
    valid = np.array([[True, False, True, True]])
    errors = errors_by_hand(agent, data, begins, valid)
    info = agent.loss(data)
    np.testing.assert_allclose(info.extra.td_error, errors, atol=1e-5)


def test_the_cue_of_the_first_step_reaches_the_value_of_the_last():
    agent = make()
    data = frames(STEP_TYPE, NEXT_STEP_TYPE)
    other = data._replace(
        observation=tf.tensor_scatter_nd_add(
            data.observation, [[0, 0], [1, 0]], [[1, 1], [1, 1]]
        )
    )
    changed = np.abs(agent.loss(data).extra.td_error - agent.loss(other).extra.td_error)
    assert (changed[0] > 1e-4).all()
    np.testing.assert_array_equal(changed[1] > 0, [True, True, False, False])


def test_a_transition_is_taken_as_its_frames_are():
    agent = make()
    data = frames(STEP_TYPE, NEXT_STEP_TYPE)
    np.testing.assert_allclose(
        agent.loss(trajectory.to_transition(data)).loss,
        agent.loss(data).loss,
        rtol=1e-5,
    )


@pytest.mark.slow
def test_train_descends_the_gradient_and_traces_once():
    agent = make(target_update_period=2)
    agent.initialize()
    train = tf.function(agent.train, autograph=False)
    data = frames(STEP_TYPE, NEXT_STEP_TYPE)
    before = [v.numpy() for v in agent._q_network.trainable_variables]
    with tf.GradientTape() as tape:
        loss = agent.loss(data, training=True).loss
    gradients = tape.gradient(loss, agent._q_network.trainable_variables)
    train(data)
    for v, old, gradient in zip(
        agent._q_network.trainable_variables, before, gradients, strict=True
    ):
        np.testing.assert_allclose(v, old - 0.1 * gradient, rtol=1e-4, atol=1e-6)
    for seed in range(3):
        train(frames(STEP_TYPE, NEXT_STEP_TYPE, seed))
    assert train.experimental_get_tracing_count() == 1
    for ours, theirs in zip(
        agent._q_network.variables, agent._target_q_network.variables, strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_a_soft_target_update_moves_the_weights_alone():
    agent = make(target_update_tau=0.25)
    old = [v.numpy() for v in agent._target_q_network.trainable_variables]
    agent.train(frames(STEP_TYPE, NEXT_STEP_TYPE))
    for v, was, online in zip(
        agent._target_q_network.trainable_variables,
        old,
        agent._q_network.trainable_variables,
        strict=True,
    ):
        np.testing.assert_allclose(v, 0.75 * was + 0.25 * online, atol=1e-6)


def test_keras_layers_in_a_sequential_give_the_same_loss():
    agent = make()
    data = frames(STEP_TYPE, NEXT_STEP_TYPE)

    def network():
        return Sequential(
            [
                keras.layers.LSTM(3, return_state=True, return_sequences=True),
                keras.layers.Dense(2),
            ],
            OBSERVATION,
        )

    other = dqn_agent.DqnAgent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        network(),
        keras.optimizers.SGD(0.1),
        target_q_network=network(),
        gamma=GAMMA,
        td_errors_loss_fn=common.element_wise_squared_loss,
    )
    assert other.train_sequence_length is None
    for a, b in (
        (agent._q_network, other._q_network),
        (agent._target_q_network, other._target_q_network),
    ):
        for ours, theirs in zip(
            b.trainable_variables, a.trainable_variables, strict=True
        ):
            ours.assign(theirs)
    np.testing.assert_allclose(other.loss(data).loss, agent.loss(data).loss, rtol=1e-5)
