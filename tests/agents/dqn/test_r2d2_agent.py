"""R2D2's loss, targets and recorded states against ones worked in NumPy."""

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
    UNITS,
    frames,
    network,
    q_by_hand,
    returns_by_hand,
)
from tfrl import losses
from tfrl.agents import R2d2Agent
from tfrl.networks import QNetwork
from tfrl.replay_buffers.tf_prioritized_replay_buffer import PrioritizedBufferInfo
from tfrl.train.loops import replay_updates
from tfrl.trajectories import time_step as ts

GAMMA = 0.8


def make(**kwargs):
    arguments = {"gamma": GAMMA, "n_step_update": 2, "target_q_network": network(2)}
    return R2d2Agent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        network(1),
        keras.optimizers.SGD(0.1),
        **{**arguments, **kwargs},
    )


def recorded(data, states=None, seed=0):
    """Frames with the states of a policy, `[2, B, T, UNITS]`; random ones if None."""
    if states is None:
        shape = [2, *data.reward.shape, UNITS]
        states = np.random.default_rng(seed).uniform(-1, 1, size=shape)
    info = {"policy_state": tuple(tf.constant(s, tf.float32) for s in states)}
    return data._replace(policy_info=info)


def h(x):
    return np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + 1e-3 * x


def h_inverse(y):
    low, high = np.full_like(y, -1e4), np.full_like(y, 1e4)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (
            np.where(h(middle) < y, middle, low),
            np.where(h(middle) < y, high, middle),
        )
    return low


def errors_by_hand(agent, data, burn_in, valid, n, stores_state=True):
    """The errors of all steps, `[B, T - 1]`, in the units of the network."""
    data = tf.nest.map_structure(lambda t: np.asarray(t, np.float64), data)
    data = data._replace(action=data.action.astype(int))
    begins = data.step_type == FIRST
    state = None
    if stores_state:
        state = [s[:, 0] for s in data.policy_info["policy_state"]]
    online, target = (
        q_by_hand(net, data.observation, begins, state)[0]
        for net in (agent._q_network, agent._target_q_network)
    )
    best = online[:, 1:].argmax(-1)
    following = np.take_along_axis(target[:, 1:], best[..., None], -1)[..., 0]
    returns = returns_by_hand(data, h_inverse(following), valid, GAMMA, n)
    taken = np.take_along_axis(online, data.action[..., None], -1)[..., 0]
    return np.where(valid, h(returns) - taken[:, :-1], 0)[:, burn_in:]


@pytest.mark.parametrize(
    ("burn_in", "n", "stores_state"),
    [(0, 1, True), (1, 2, True), (2, 3, True), (2, 2, False)],
)
def test_loss_matches_numpy(burn_in, n, stores_state):
    agent = make(burn_in_length=burn_in, n_step_update=n, stores_state=stores_state)
    data = frames(STEP_TYPE, NEXT_STEP_TYPE)
    if stores_state:
        data = recorded(data)
    valid = np.array(STEP_TYPE)[:, :-1] != LAST
    errors = errors_by_hand(agent, data, burn_in, valid, n, stores_state)
    info = agent.loss(data)
    np.testing.assert_allclose(info.extra.td_error, errors, atol=1e-5)
    expected = 0.5 * (errors**2).sum(axis=1)
    np.testing.assert_allclose(info.extra.td_loss, expected, rtol=1e-4)
    np.testing.assert_allclose(info.loss, expected.mean(), rtol=1e-4)
    weighted = agent.loss(data, weights=tf.constant([1.0, 0.0, 2.0])).loss
    np.testing.assert_allclose(weighted, (expected * [1, 0, 2]).mean(), rtol=1e-4)
    assert float(agent.train(data).loss) == pytest.approx(float(info.loss), rel=1e-5)


def test_the_target_of_a_termination_is_the_rescaled_reward():
    # h(3) = sqrt(4) - 1 + 0.003, and h(-8) = -(sqrt(9) - 1) - 0.008.
    agent = make(burn_in_length=0)
    data = recorded(frames([[MID, LAST]] * 2, [[LAST, FIRST]] * 2))
    data = data._replace(reward=tf.constant([[3.0, 7.0], [-8.0, 7.0]]))
    state = [s[:, 0] for s in data.policy_info["policy_state"]]
    values, _ = agent._q_network(
        data.observation[:, 0], step_type=data.step_type[:, 0], network_state=state
    )
    taken = tf.gather(values, data.action[:, 0], batch_dims=1)
    np.testing.assert_allclose(
        agent.loss(data).extra.td_error[:, 0] + taken, [1.003, -2.008], atol=1e-6
    )


def test_a_burn_in_is_the_state_after_it_without_a_gradient():
    # The networks agree, so that the state after the burn-in is the same for both.
    burnt = make(burn_in_length=2)
    burnt.initialize()
    fresh = make(burn_in_length=0)
    fresh.initialize()
    data = recorded(frames(STEP_TYPE[::2], NEXT_STEP_TYPE[::2]))
    arrays = tf.nest.map_structure(np.asarray, data)
    state = [s[:, 0] for s in arrays.policy_info["policy_state"]]
    begins = arrays.step_type == FIRST
    _, states = q_by_hand(burnt._q_network, arrays.observation, begins, state)
    # The state before step 2 is that after step 1.
    before = np.roll(states, 1, axis=2)
    rest = tf.nest.map_structure(lambda t: t[:, 2:], recorded(data, before))

    def gradients(agent, data):
        with tf.GradientTape() as tape:
            loss = agent.loss(data, training=True).loss
        return loss, tape.gradient(loss, agent._q_network.trainable_variables)

    for ours, theirs in zip(
        tf.nest.flatten(gradients(burnt, data)),
        tf.nest.flatten(gradients(fresh, rest)),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_what_precedes_an_episode_in_the_burn_in_is_forgotten():
    agent = make(burn_in_length=3)
    step_type = [[MID, LAST, FIRST, MID, MID]]
    next_step_type = [[LAST, FIRST, MID, MID, MID]]
    data = recorded(frames(step_type, next_step_type))
    other = recorded(data, seed=1)
    np.testing.assert_array_equal(
        agent.loss(data).extra.td_error, agent.loss(other).extra.td_error
    )
    late = recorded(frames([[MID] * 5], [[MID] * 5]))
    assert not np.allclose(
        agent.loss(late).extra.td_error,
        agent.loss(recorded(late, seed=1)).extra.td_error,
        atol=1e-4,
    )


def test_masked_steps_do_not_count_even_if_they_are_not_finite():
    agent = make(burn_in_length=1)
    data = recorded(frames(STEP_TYPE[1:2], NEXT_STEP_TYPE[1:2]))
    broken = data._replace(
        reward=tf.constant([[0.0, 1.0, np.nan, 2.0, np.inf]])
        * tf.ones_like(data.reward)
    )
    info = agent.loss(broken)
    assert np.isfinite(info.loss)
    # The boundary is the third frame, which is the second after the burn-in.
    np.testing.assert_array_equal(info.extra.td_error[0] != 0, [True, False, True])


def test_the_recorded_state_is_the_one_that_the_action_was_computed_from():
    agent = make(epsilon_greedy=0.5, seed=3)
    policy = agent.collect_policy
    rng = np.random.default_rng(0)
    observations = rng.normal(size=[2, 5, 2]).astype(np.float32)
    step_type = np.array([[FIRST, MID, MID, MID, MID], [MID, MID, LAST, FIRST, MID]])
    state = policy.get_initial_state(2)
    infos = []
    for t in range(5):
        step = ts.TimeStep(
            tf.constant(step_type[:, t], tf.int32),
            tf.zeros([2]),
            tf.ones([2]),
            tf.constant(observations[:, t]),
        )
        result = policy.action(step, state, seed=t)
        infos.append(result.info["policy_state"])
        state = result.state
    _, after = q_by_hand(agent._q_network, observations, step_type == FIRST)
    expected = np.roll(after, 1, axis=2)
    expected[:, :, 0] = 0
    expected[:, step_type == FIRST] = 0
    for t, info in enumerate(infos):
        np.testing.assert_allclose(info, expected[:, :, t], atol=1e-6)
    # The policy to deploy records nothing, and shows the values of returns.
    assert agent.policy.info_spec == ()


class Priorities:
    """A buffer that shows the priorities that it is given."""

    is_prioritized = True

    def update_priorities(self, keys, priorities):
        self.given = keys, priorities
        return tf.constant(True)


def test_priorities_mix_the_largest_error_and_the_mean_after_the_burn_in():
    agent = make(burn_in_length=2)
    data = recorded(frames(STEP_TYPE, NEXT_STEP_TYPE))
    valid = np.array(STEP_TYPE)[:, :-1] != LAST
    sizes = np.abs(errors_by_hand(agent, data, 2, valid, n=2))
    buffer = Priorities()
    info = PrioritizedBufferInfo((), (), tf.range(3), tf.ones([3]))
    replay_updates.train_on(
        agent, buffer, data, info, priority_fn=losses.sequence_priorities
    )
    keys, priorities = buffer.given
    np.testing.assert_array_equal(keys, [0, 1, 2])
    expected = 0.9 * sizes.max(axis=1) + 0.1 * sizes.mean(axis=1)
    np.testing.assert_allclose(priorities, expected, atol=1e-5)
    largest = np.abs(agent.loss(data).extra.td_error).max(axis=1)
    replay_updates.train_on(agent, buffer, data, info)
    np.testing.assert_allclose(buffer.given[1], largest, atol=1e-6)
    with pytest.raises(ValueError, match=r"priority_fn: expected one priority for"):
        replay_updates.train_on(agent, buffer, data, info, priority_fn=tf.abs)


def test_diagnosed_values_are_in_the_units_of_returns():
    agent = make(burn_in_length=1)
    data = recorded(frames(STEP_TYPE[:1], NEXT_STEP_TYPE[:1]))
    arrays = tf.nest.map_structure(np.asarray, data)
    state = [s[:, 0] for s in arrays.policy_info["policy_state"]]
    values, _ = q_by_hand(
        agent._q_network, arrays.observation, arrays.step_type == FIRST, state
    )
    taken = np.take_along_axis(values, arrays.action[..., None], -1)[0, 1:-1, 0]
    np.testing.assert_allclose(
        agent.diagnose(data)["q_value"], h_inverse(taken).mean(), rtol=1e-4
    )


def test_too_short_sequences_say_how_long_they_must_be():
    agent = make(burn_in_length=4)
    data = recorded(frames(STEP_TYPE, NEXT_STEP_TYPE))
    with pytest.raises(ValueError, match="got 5 frames, expected at least 6: 4 of the"):
        agent.loss(data)


def test_feed_forward_networks_and_negative_burn_ins_are_refused():
    with pytest.raises(ValueError, match=r"q_network: got .* expected a recurrent"):
        R2d2Agent(
            ts.time_step_spec(OBSERVATION), ACTION, QNetwork(OBSERVATION, ACTION), None
        )
    with pytest.raises(ValueError, match="burn_in_length"):
        make(burn_in_length=-1)
