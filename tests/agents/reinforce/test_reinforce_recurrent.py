"""REINFORCE with recurrent networks against their single steps."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.reinforce import reinforce_agent
from tfrl.networks import ActorDistributionRnnNetwork, ValueRnnNetwork
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

FIRST, MID, LAST = 0, 1, 2
OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
SMALL = {
    "input_fc_layer_params": (4,),
    "lstm_size": (3,),
    "output_fc_layer_params": None,
    "activation_fn": "tanh",
    "seed": 0,
}
GAMMA = 0.9

# Row 0: an episode of two steps that terminates, then one of three that a time limit
# ends. Row 1: one of four steps, then the beginning of another.
STEP_TYPE = [[FIRST, MID, LAST, FIRST, MID, MID, LAST], [FIRST, MID, MID, MID, 2, 0, 1]]
NEXT = [[MID, LAST, FIRST, MID, MID, LAST, FIRST], [MID, MID, MID, LAST, 0, 1, 1]]
DISCOUNT = [[1, 0, 1, 1, 1, 1, 1], [1, 1, 1, 0, 1, 1, 1]]


def make_frames():
    rng = np.random.default_rng(0)
    return trajectory.Trajectory(
        step_type=tf.constant(STEP_TYPE),
        observation=tf.constant(rng.normal(size=[2, 7, 2]), tf.float32),
        action=tf.constant(rng.integers(3, size=[2, 7]), tf.int32),
        policy_info=(),
        next_step_type=tf.constant(NEXT),
        reward=tf.constant(rng.normal(size=[2, 7]), tf.float32),
        discount=tf.constant(DISCOUNT, tf.float32),
    )


def make_agent(**kwargs):
    return reinforce_agent.ReinforceAgent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        ActorDistributionRnnNetwork(OBSERVATION, ACTION, **SMALL),
        keras.optimizers.SGD(0.1),
        gamma=GAMMA,
        normalize_returns=False,
        **kwargs,
    )


def one_by_one(network, frames, read):
    """What `read` makes of the network's output for each step, with its state kept."""
    state, outputs = network.get_initial_state(2), []
    for t in range(7):
        output, state = network(frames.observation[:, t], frames.step_type[:, t], state)
        outputs.append(read(output, t))
    return np.stack(outputs, axis=1)


def log_probabilities(agent, frames):
    return one_by_one(
        agent._actor_network,
        frames,
        lambda distribution, t: distribution.log_prob(frames.action[:, t]).numpy(),
    )


def returns_of(reward, episodes, bootstrap=0.0):
    """Discounted sums over `(row, begin, end)`, `bootstrap` after the second."""
    returns = np.zeros([2, 7])
    for i, (row, begin, end) in enumerate(episodes):
        following = bootstrap if i == 1 else 0.0
        for t in reversed(range(begin, end)):
            following = reward[row, t] + GAMMA * following
            returns[row, t] = following
    return returns


EPISODES = [(0, 0, 2), (0, 3, 6), (1, 0, 4)]


def test_loss_is_that_of_the_policy_step_by_step():
    agent, frames = make_agent(), make_frames()
    expected = -np.sum(
        log_probabilities(agent, frames)
        * returns_of(frames.reward.numpy(), EPISODES)
        / 3
    )
    np.testing.assert_allclose(agent.loss(frames).loss, expected, rtol=1e-4)


def test_the_value_after_a_time_limit_remembers_the_episode():
    value_network = ValueRnnNetwork(OBSERVATION, **SMALL)
    agent, frames = make_agent(value_network=value_network), make_frames()
    values = one_by_one(value_network, frames, lambda value, t: value.numpy())
    returns = returns_of(frames.reward.numpy(), EPISODES, bootstrap=values[0, 6])
    np.testing.assert_allclose(agent._returns(frames)[0, 3:6], returns[0, 3:6], 1e-4)
    inside = np.array([[1, 1, 0, 1, 1, 1, 0], [1, 1, 1, 1, 0, 0, 0]])
    advantages = (returns - values) * inside
    info = agent.loss(frames)
    np.testing.assert_allclose(
        info.extra.policy_gradient_loss,
        -np.sum(log_probabilities(agent, frames) * advantages) / 3,
        rtol=1e-3,
    )
    np.testing.assert_allclose(
        info.extra.value_estimation_loss, 0.2 * np.sum(advantages**2) / 3, rtol=1e-4
    )


@pytest.mark.slow
def test_training_traces_once_for_every_length():
    agent = make_agent(value_network=ValueRnnNetwork(OBSERVATION, **SMALL))
    frames = make_frames()
    spec = tf.nest.map_structure(
        lambda t: tf.TensorSpec([2, None, *t.shape[2:]], t.dtype), frames
    )
    train = tf.function(agent.train, input_signature=[spec], autograph=False)
    before = [v.numpy() for v in agent._actor_network.trainable_variables]
    train(frames)
    train(tf.nest.map_structure(lambda t: t[:, :5], frames))
    assert train.experimental_get_tracing_count() == 1
    for v, old in zip(agent._actor_network.trainable_variables, before, strict=True):
        assert np.abs(v - old).max() > 0
