"""IMPALA's loss against NumPy, its kinship with A2C, and its older policies."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.agents.on_policy.rollouts import LAST, MID, collect
from tfrl import agents, networks
from tfrl.agents.on_policy import impala_agent
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([2], tf.float32)
CHOICE = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
ROWS = ["fmTbfm", "mmMbfm"]


def make(kind=agents.ImpalaAgent, is_recurrent=False, **kwargs):
    if is_recurrent:
        actor_net = networks.ActorDistributionRnnNetwork(
            OBSERVATION, CHOICE, lstm_size=(3,), seed=1
        )
        value_net = networks.ValueRnnNetwork(OBSERVATION, lstm_size=(2,), seed=2)
    else:
        actor_net = networks.ActorDistributionNetwork(
            OBSERVATION, CHOICE, fc_layer_params=(4,), seed=1
        )
        value_net = networks.ValueNetwork(OBSERVATION, fc_layer_params=(4,), seed=2)
    agent = kind(
        ts.time_step_spec(OBSERVATION),
        CHOICE,
        keras.optimizers.SGD(0.1),
        actor_net,
        value_net,
        **kwargs,
    )
    agent.initialize()
    return agent


def moved(agent):
    """Moves the weights: then another policy has collected the frames."""
    rng = np.random.default_rng(1)
    for network in (agent.actor_net, agent.value_net):
        for variable in network.trainable_variables:
            variable.assign(variable + rng.normal(0.0, 0.3, variable.shape))
    return agent


def by_numpy(agent, frames, gamma=0.9, entropy_weight=0.01, value_weight=0.5):
    """The loss by the definitions, a loop over each row backwards."""
    values = agent.collect_policy.apply_value_network(
        frames.observation, frames.step_type
    )[0].numpy()
    distribution = agent.actor_net(frames.observation)[0]
    log_probs = distribution.log_prob(frames.action).numpy()
    logits = frames.policy_info["dist_params"]["logits"]
    old = tf.nn.log_softmax(logits).numpy()
    old = np.take_along_axis(old, frames.action.numpy()[..., np.newaxis], -1)[..., 0]
    rhos = np.minimum(1.0, np.exp(log_probs - old))
    rewards, discounts = frames.reward.numpy(), gamma * frames.discount.numpy()
    total = 0.0
    for b in range(len(values)):
        ahead = values[b, -1]
        for t in range(values.shape[1] - 2, -1, -1):
            if frames.step_type[b, t] == LAST:
                ahead = None
                continue
            reached = values[b, t + 1]
            if frames.next_step_type[b, t] != MID or ahead is None:
                ahead = reached
            step = rewards[b, t] + discounts[b, t] * reached - values[b, t]
            target = (
                values[b, t]
                + rhos[b, t] * step
                + discounts[b, t] * rhos[b, t] * (ahead - reached)
            )
            advantage = rewards[b, t] + discounts[b, t] * ahead - values[b, t]
            total -= log_probs[b, t] * rhos[b, t] * advantage
            total += value_weight * (target - values[b, t]) ** 2
            total -= entropy_weight * distribution.entropy()[b, t].numpy()
            ahead = target
    return total / (len(values) * (values.shape[1] - 1))


@pytest.fixture(scope="module")
def older():
    """An agent, and frames that it collected with other weights."""
    agent = make(discount_factor=0.9)
    frames, _ = collect(agent, *ROWS)
    return moved(agent), frames


def test_the_loss_of_older_frames_is_that_of_numpy(older):
    agent, frames = older
    info = agent.loss(frames)
    np.testing.assert_allclose(info.loss, by_numpy(agent, frames), rtol=1e-4)
    assert info.extra.approx_kl > 0.01


def test_a_cut_row_is_learned_from_as_two_rows():
    """The row before the cut ends with the last observation that is known."""
    agent = make(discount_factor=0.9)
    frames, _ = collect(agent, "fmmmfmmm")
    moved(agent)
    halves = [
        tf.nest.map_structure(lambda leaf, part=part: leaf[:, part], frames)
        for part in (slice(0, 4), slice(4, 8))
    ]
    # Each half has 3 steps, the whole row 7 frames.
    expected = 3 / 7 * sum(by_numpy(agent, half) for half in halves)
    np.testing.assert_allclose(agent.loss(frames).loss, expected, rtol=1e-4)


def test_rewards_are_clipped(older):
    agent, frames = older
    clipped = frames._replace(reward=tf.clip_by_value(frames.reward, -0.5, 0.5))
    limited = make(discount_factor=0.9, max_abs_reward=0.5)
    for variable, value in zip(limited.variables(), agent.variables(), strict=True):
        variable.assign(value)
    loss = limited.loss(frames).loss
    np.testing.assert_allclose(loss, agent.loss(clipped).loss, rtol=1e-5)
    assert abs(loss - agent.loss(frames).loss) > 0.1


def test_with_frames_of_its_own_policy_it_is_a2c():
    settings = {"gradient_clipping": 0.5, "entropy_regularization": 0.01}
    agent, a2c = make(**settings), make(agents.A2CAgent, **settings)
    frames, _ = collect(agent, *ROWS)
    agent.train(frames)
    a2c.train(frames)
    for a, b in zip(agent.variables(), a2c.variables(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def recurrent():
    agent = make(is_recurrent=True)
    frames, _ = collect(agent, "fmmmMbfm", "fmmmmmmm")
    return moved(agent), frames


@pytest.mark.slow
def test_recurrent_networks_go_on_from_the_recorded_state(recurrent):
    agent, frames = recurrent
    part = tf.nest.map_structure(lambda leaf: leaf[:, 2:], frames)
    state = part.policy_info["policy_state"]
    first = tf.nest.pack_sequence_as(
        agent.collect_policy.policy_state_spec,
        [leaf[:, 0] for leaf in tf.nest.flatten(state)],
    )
    assert np.any(first["actor_network_state"][0])
    loss = agent.loss(part).loss
    given = agent.loss(part, policy_state=first).loss
    np.testing.assert_allclose(loss, given, rtol=1e-6)
    zeros = tf.nest.map_structure(tf.zeros_like, first)
    assert abs(loss - agent.loss(part, policy_state=zeros).loss) > 1e-3


def test_recurrent_networks_forget_where_an_episode_begins(recurrent):
    agent, frames = recurrent
    one = tf.nest.map_structure(lambda leaf: leaf[:1], frames)
    new_episode = tf.nest.map_structure(lambda leaf: leaf[:, 6:], one)
    alone = agent.loss(new_episode)
    # The other frames weigh nothing, so that the mean is over one step of seven.
    among = agent.loss(one, weights=tf.constant([[0.0] * 6 + [1.0]]))
    np.testing.assert_allclose(among.loss * 7, alone.loss, rtol=1e-4)


def test_the_collecting_policy_is_updated_after_every_second_train_step():
    agent = make(collect_update_period=2)
    frames, _ = collect(agent, *ROWS)
    time_step = ts.restart(tf.ones([1, 2]), batch_size=1)

    def logits(policy):
        return policy.distribution(time_step).action.logits.numpy()

    before = logits(agent.collect_policy)
    policy = agent.policy.wrapped_policy
    np.testing.assert_array_equal(before, logits(policy))
    agent.train(frames)
    np.testing.assert_array_equal(before, logits(agent.collect_policy))
    assert np.any(before != logits(policy))
    agent.train(frames)
    np.testing.assert_array_equal(logits(policy), logits(agent.collect_policy))


@pytest.mark.parametrize(
    "arguments",
    [{"clip_rho": 0.0}, {"max_abs_reward": -1.0}, {"collect_update_period": 0}],
)
def test_numbers_out_of_range_are_named(arguments):
    (name,) = arguments
    with pytest.raises(ValueError, match=f"^{name}: expected"):
        make(**arguments)


def test_a_recurrent_network_of_logits_and_values_learns():
    network = networks.Sequential(
        [
            keras.layers.LSTMCell(3),
            keras.layers.Dense(4),
            tf.nn.relu,
            networks.PolicyValueHead(num_actions=3),
        ],
        seed=1,
    )
    actor_net, value_net = impala_agent.split_network(network, OBSERVATION, CHOICE)
    agent = agents.ImpalaAgent(
        ts.time_step_spec(OBSERVATION),
        CHOICE,
        keras.optimizers.Adam(1e-2),
        actor_net,
        value_net,
    )
    agent.initialize()
    frames, _ = collect(agent, "fmmMbfm", "mmmmmmm")
    (logits, values), _ = network(
        frames.observation,
        step_type=frames.step_type,
        network_state=network.get_initial_state(2),
    )
    np.testing.assert_allclose(
        frames.policy_info["dist_params"]["logits"], logits, rtol=1e-4, atol=1e-6
    )
    found, _ = agent.collect_policy.apply_value_network(
        frames.observation, frames.step_type
    )
    np.testing.assert_allclose(found, values, rtol=1e-4, atol=1e-6)
    # Each weight is trained once. Beside them and the optimizer's slots are its two
    # counters, the agent's, and the state of the cell's random numbers.
    weights = network.trainable_variables
    before = [weight.numpy() for weight in weights]
    assert len(agent.variables()) == 2 * len(weights) + len(network.variables) + 3
    agent.train(frames)
    assert all(
        np.any(weight.numpy() != old)
        for weight, old in zip(weights, before, strict=True)
    )
