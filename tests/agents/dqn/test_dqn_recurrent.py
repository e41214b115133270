"""The loss of a recurrent Q-network against one worked in NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.networks import QRnnNetwork, Sequential
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import common

FIRST, MID, LAST = 0, 1, 2
OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
GAMMA = 0.8


def frames(step_type, next_step_type, seed=0):
    rng = np.random.default_rng(seed)
    shape = np.shape(step_type)
    result = trajectory.Trajectory(
        step_type=np.array(step_type, np.int32),
        observation=rng.normal(size=[*shape, 2]).astype(np.float32),
        action=rng.integers(2, size=shape).astype(np.int32),
        policy_info=(),
        next_step_type=np.array(next_step_type, np.int32),
        reward=rng.normal(size=shape).astype(np.float32),
        discount=np.where(np.array(next_step_type) == LAST, 0, 0.9).astype(np.float32),
    )
    return tf.nest.map_structure(tf.constant, result)


# A row in one episode, one across a boundary, one that ends at the window's end.
STEP_TYPE = [
    [FIRST, MID, MID, MID, MID],
    [MID, MID, LAST, FIRST, MID],
    [MID, MID, MID, MID, MID],
]
NEXT_STEP_TYPE = [
    [MID, MID, MID, MID, MID],
    [MID, LAST, FIRST, MID, MID],
    [MID, MID, MID, MID, LAST],
]


def make(kind=dqn_agent.DqnAgent, seed=0, **kwargs):
    def network(seed):
        net = QRnnNetwork(
            OBSERVATION,
            ACTION,
            input_fc_layer_params=None,
            lstm_size=(3,),
            output_fc_layer_params=None,
            seed=seed,
        )
        net.create_variables()
        rng = np.random.default_rng(seed)
        for v in net.trainable_variables:
            v.assign(rng.normal(size=v.shape) / 2)
        return net

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


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def q_by_hand(network, observations, begins):
    """An LSTM and a linear layer; the state is zero where an episode begins."""
    kernel, recurrent, bias, q_kernel, q_bias = (
        v.numpy() for v in network.trainable_variables
    )
    batch, time, _ = observations.shape
    h, c = np.zeros([2, batch, 3])
    values = []
    for t in range(time):
        h, c = (np.where(begins[:, t, None], 0, s) for s in (h, c))
        gates = observations[:, t] @ kernel + h @ recurrent + bias
        i, f, g, o = np.split(gates, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        values.append(h @ q_kernel + q_bias)
    return np.stack(values, axis=1)


def errors_by_hand(agent, data, begins, valid, double=False):
    data = tf.nest.map_structure(np.asarray, data)
    online = q_by_hand(agent._q_network, data.observation, begins)
    target = q_by_hand(agent._target_q_network, data.observation, begins)
    best = (online if double else target)[:, 1:].argmax(-1)
    following = np.take_along_axis(target[:, 1:], best[..., None], -1)[..., 0]
    taken = np.take_along_axis(online, data.action[..., None], -1)[..., 0]
    errors = (
        data.reward[:, :-1] + GAMMA * data.discount[:, :-1] * following - taken[:, :-1]
    )
    return np.where(valid, errors, 0)


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
