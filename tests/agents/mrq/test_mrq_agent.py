"""MR.Q's losses, targets and updates, against NumPy's doubles written from the paper.

All networks are linear with a tanh, and those that are trained, in use and targets have
different weights, so that a mixed-up copy would show.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import some_slow
from tfrl import agents, losses, networks
from tfrl.agents import mrq, unit_actions
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import variables

OBSERVATION = tf.TensorSpec([2], tf.float32)
# The middles are 1 and 0, the half-widths 2 and 0.5.
FORCE = BoundedTensorSpec([2], tf.float32, [-1, -0.5], [3, 0.5])
CHOICE = BoundedTensorSpec([], tf.int32, 1, 2)
REWARDS = losses.TwoHot(-2.0, 2.0, 5)
GAMMA, HORIZON, STEPS, RATE = 0.9, 3, 2, 0.1
NOW, BEFORE = 1.7, 0.6  # The scales of rewards.
SIZES = {"z": 3, "zsa": 4, "a": 2}
RNG = np.random.default_rng(7)


def draw(rows, columns):
    return [RNG.normal(size=[rows, columns]), RNG.normal(size=[columns])]


# Of each network those that learn, are in use, and are targets.
WEIGHTS = {
    "states": [draw(2, 3) for _ in range(3)],
    "pairs": [draw(5, 4) for _ in range(3)],
    "actor": [draw(3, 2) for _ in range(2)],
    "critic": [[RNG.normal(size=[2, n, 1]) for n in (4, 1)] for _ in "12"],
    "model": [draw(4, 3 + 5 + 1)],
}
# Each row is a case: no end, a termination, a truncation, a boundary at once, a cut.
STEP_TYPES = np.array(
    [[1, 1, 1, 1], [0, 1, 2, 0], [1, 2, 0, 1], [2, 0, 1, 1], [1, 1, 0, 1]]
)
NEXT_STEP_TYPES = np.array(
    [[1, 1, 1, 1], [1, 2, 0, 1], [2, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1]]
)
DISCOUNTS = np.array(
    [[1, 1, 1, 1], [1, 0, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1.0]]
)
# The steps of the first step's episode, of three.
LENGTHS = [3, 2, 1, 0, 1]
OBSERVED = RNG.normal(size=[5, 4, 2])
ACTED = RNG.uniform([-1, -0.5], [3, 0.5], size=[5, 4, 2])
CHOSEN = RNG.integers(1, 3, size=[5, 4])
PAID = RNG.normal(size=[5, 4]) * 2


def frames(spec=FORCE):
    action = tf.constant(ACTED if spec is FORCE else CHOSEN, spec.dtype)
    return trajectory.Trajectory(
        step_type=tf.constant(STEP_TYPES, tf.int32),
        observation=tf.constant(OBSERVED, tf.float32),
        action=action,
        policy_info=(),
        next_step_type=tf.constant(NEXT_STEP_TYPES, tf.int32),
        reward=tf.constant(PAID, tf.float32),
        discount=tf.constant(DISCOUNTS, tf.float32),
    )


def dense(units, **kwargs):
    return keras.layers.Dense(units, **kwargs)


def joined(size):
    pair = tf.TensorSpec([3], tf.float32), tf.TensorSpec([2], tf.float32)
    encoder = networks.EncodingNetwork(
        pair, preprocessing_combiner=keras.layers.Concatenate()
    )
    return networks.Sequential([encoder, dense(size, activation="tanh")])


def make(spec=FORCE, optimizer=keras.optimizers.SGD, weights=WEIGHTS, **kwargs):
    """An agent with the weights above."""
    critic = networks.CriticEnsembleNetwork(
        (tf.TensorSpec([4], tf.float32), ()), 2, fc_layer_params=()
    )
    agent = agents.MrqAgent(
        ts.time_step_spec(OBSERVATION),
        spec,
        networks.Sequential([dense(3, activation="tanh")], input_spec=OBSERVATION),
        joined(4),
        networks.Sequential([dense(2)]),
        critic,
        *(optimizer(RATE) for _ in range(3)),
        **{
            "horizon": HORIZON,
            "n_step_update": STEPS,
            "gamma": GAMMA,
            "reward_loss": REWARDS,
            "target_policy_noise": 0.0,
            "activation_penalty": 0.2,
            "gradient_clipping": None,
            "seed": 3,
            **kwargs,
        },
    )
    agent.initialize()
    assign(agent, weights)
    # Not due, so that the weights stay different.
    agent.train_step_counter.assign(1)
    return agent


def parts_of(agent):
    return {
        "states": [agent._learning_states, agent._states, agent._target_states],
        "pairs": [agent._learning_pairs, agent._pairs, agent._target_pair_encoder],
        "actor": [agent._actor, agent._target_actor],
        "critic": [agent._critic, agent._target_critic],
        "model": [agent._model],
    }


def assign(agent, weights):
    for name, found in parts_of(agent).items():
        for network, values in zip(found, weights[name], strict=True):
            for variable, value in zip(network.variables, values, strict=True):
                variables.as_tf_variable(variable).assign(value)
    scale = agent._reward_scale
    scale._now.assign(NOW)
    scale._before.assign(BEFORE)
    scale._sizes.count.assign(1)  # As if there had been frames.
    scale.ends.assign(1.0)


# The paper, in NumPy.


def affine(weights, x):
    return x @ weights[0] + weights[1]


def embed(weights, *parts):
    return np.tanh(affine(weights, np.concatenate(parts, axis=-1)))


def vectors(spec):
    if spec is FORCE:
        return (ACTED - [1, 0]) / [2, 0.5]
    return np.eye(2)[CHOSEN - 1]


def cross_entropy(logits, reward):
    bins = np.array([1 - np.e**2, 1 - np.e, 0, np.e - 1, np.e**2 - 1])
    two_hot = [np.interp(reward, bins, row) for row in np.eye(5)]
    return -np.sum(two_hot * (logits - np.log(np.exp(logits).sum())))


def encoder_losses(w, spec=FORCE, ends=1.0):
    """The loss of each example: its rollout, step by step."""
    found = []
    for b, length in enumerate(LENGTHS):
        z, total = embed(w["states"][0], OBSERVED[b, 0]), 0.0
        for t in range(length):
            z_sa = embed(w["pairs"][0], z, vectors(spec)[b, t])
            out = affine(w["model"][0], z_sa)
            z, logits, end = out[:3], out[3:8], out[8]
            in_use = embed(w["states"][1], OBSERVED[b, t + 1])
            total += np.mean((z - in_use) ** 2)
            total += 0.1 * cross_entropy(logits, PAID[b, t])
            total += 0.1 * ends * (end - (1 - DISCOUNTS[b, t])) ** 2
        found.append(total)
    return np.array(found)


def q_values(encoder, critic, z, action):
    return np.array(
        [
            (embed(encoder, z, action) @ kernel)[..., 0] + bias.item()
            for kernel, bias in zip(*critic, strict=True)
        ]
    )


def td_errors(w, spec=FORCE):
    """The errors of both critics, `[2, B]`."""
    found = []
    for b, length in enumerate(LENGTHS):
        steps = min(length, STEPS)
        if not steps:
            found.append([0.0, 0.0])
            continue
        back, discount = 0.0, 1.0
        for t in range(steps):
            back += discount * PAID[b, t]
            discount *= GAMMA * DISCOUNTS[b, t]
        z = embed(w["states"][2], OBSERVED[b, steps])
        outputs = affine(w["actor"][1], z)
        action = np.tanh(outputs) if spec is FORCE else None
        smallest = q_values(w["pairs"][2], w["critic"][1], z, action).min()
        target = (back + discount * smallest * BEFORE) / NOW
        z = embed(w["states"][1], OBSERVED[b, 0])
        q = q_values(w["pairs"][1], w["critic"][0], z, vectors(spec)[b, 0])
        found.append(target - q)
    return np.transpose(found)


def huber(x):
    return np.where(np.abs(x) <= 1, x**2 / 2, np.abs(x) - 0.5)


def critic_loss(w):
    return huber(td_errors(w)).sum(axis=0).mean()


def actor_loss(w):
    found = []
    for b, length in enumerate(LENGTHS):
        z = embed(w["states"][1], OBSERVED[b, 0])
        outputs = affine(w["actor"][0], z)
        q = q_values(w["pairs"][1], w["critic"][0], z, np.tanh(outputs))
        found.append((0.2 * np.mean(outputs**2) - q.mean()) * (length > 0))
    return np.mean(found)


def test_losses_of_every_kind_of_end():
    loss, extra = make().loss(frames())
    np.testing.assert_allclose(
        extra.encoder_loss, encoder_losses(WEIGHTS).mean(), rtol=1e-5
    )
    errors = td_errors(WEIGHTS)
    largest = errors[np.abs(errors).argmax(axis=0), range(5)]
    np.testing.assert_allclose(extra.td_error, largest, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        extra.td_loss, huber(errors).sum(axis=0), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(extra.critic_loss, critic_loss(WEIGHTS), rtol=1e-5)
    np.testing.assert_allclose(extra.actor_loss, actor_loss(WEIGHTS), rtol=1e-5)
    np.testing.assert_allclose(
        loss, extra.encoder_loss + extra.critic_loss + extra.actor_loss, rtol=1e-6
    )


def test_terminations_count_only_once_there_was_one():
    agent = make()
    agent._reward_scale.ends.assign(0.0)
    np.testing.assert_allclose(
        agent.loss(frames()).extra.encoder_loss,
        encoder_losses(WEIGHTS, ends=0.0).mean(),
        rtol=1e-5,
    )


def test_weights_scale_the_losses_of_encoder_and_critics():
    weights = np.array([0.5, 2.0, 0.0, 1.0, 3.0])
    extra = make().loss(frames(), tf.constant(weights, tf.float32)).extra
    np.testing.assert_allclose(
        extra.encoder_loss, np.mean(weights * encoder_losses(WEIGHTS)), rtol=1e-5
    )
    of_critics = huber(td_errors(WEIGHTS)).sum(axis=0)
    np.testing.assert_allclose(
        extra.critic_loss, np.mean(weights * of_critics), rtol=1e-5
    )


def slope(loss, weights, name):
    """The slope of a loss in the weights of a network that learns."""
    found = [np.zeros_like(value) for value in weights[name][0]]
    for i, value in enumerate(weights[name][0]):
        for index in np.ndindex(value.shape):
            sides = []
            for step in (1e-6, -1e-6):
                moved = [each.copy() for each in weights[name][0]]
                moved[i][index] += step
                sides.append(loss({**weights, name: [moved, *weights[name][1:]]}))
            found[i][index] = (sides[0] - sides[1]) / 2e-6
    return found


def test_each_part_follows_the_slope_of_its_own_loss():
    agent = make()
    agent.train(frames())
    whole = {
        "states": lambda w: encoder_losses(w).mean(),
        "pairs": lambda w: encoder_losses(w).mean(),
        "model": lambda w: encoder_losses(w).mean(),
        "critic": critic_loss,
    }
    after = {name: [list(x) for x in w] for name, w in WEIGHTS.items()}
    for name, loss in whole.items():
        steps = slope(loss, WEIGHTS, name)
        after[name][0] = [
            v - RATE * s for v, s in zip(WEIGHTS[name][0], steps, strict=True)
        ]
    # The actor follows the critics as they have become.
    critic_is_new = {**WEIGHTS, "critic": after["critic"]}
    steps = slope(actor_loss, critic_is_new, "actor")
    after["actor"][0] = [
        v - RATE * s for v, s in zip(WEIGHTS["actor"][0], steps, strict=True)
    ]
    for name, found in parts_of(agent).items():
        for network, expected in zip(found, after[name], strict=True):
            for variable, value in zip(network.variables, expected, strict=True):
                np.testing.assert_allclose(
                    variable, value, rtol=1e-4, atol=1e-5, err_msg=name
                )


def test_a_period_begins_with_copies_and_the_scale():
    agent = make(target_update_period=4, optimizer=lambda _: keras.optimizers.SGD(0.0))
    agent._reward_scale._sizes.reset()
    agent.update_normalizers(frames())
    # Not the boundaries, nor the frame before a cut, which is an ordinary one here.
    sizes = np.abs(PAID)[STEP_TYPES != 2]
    for counter in (1, 2, 3):
        assert agent.train_step_counter == counter
        agent.train(frames())
        assert agent._reward_scale.now == np.float32(NOW)
    agent.train(frames())
    np.testing.assert_allclose(agent._reward_scale.now, sizes.mean(), rtol=1e-5)
    np.testing.assert_allclose(agent._reward_scale.before, NOW, rtol=1e-6)
    shifted = {
        "states": [0, 0, 1],
        "pairs": [0, 0, 1],
        "actor": [0, 0],
        "critic": [0, 0],
        "model": [0],
    }
    for name, found in parts_of(agent).items():
        for network, source in zip(found, shifted[name], strict=True):
            for variable, value in zip(
                network.variables, WEIGHTS[name][source], strict=True
            ):
                np.testing.assert_allclose(variable, value, rtol=1e-6, err_msg=name)


def test_frames_after_the_episode_change_nothing():
    changed = OBSERVED.copy()
    for b, length in enumerate(LENGTHS):
        changed[b, length + 1 :] += 100.0
    moved = frames()._replace(observation=tf.constant(changed, tf.float32))
    for one, other in zip(
        tf.nest.flatten(make().loss(frames())),
        tf.nest.flatten(make().loss(moved)),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_a_discrete_action_is_one_hot_in_the_encoder():
    extra = make(CHOICE).loss(frames(CHOICE)).extra
    np.testing.assert_allclose(
        extra.encoder_loss, encoder_losses(WEIGHTS, CHOICE).mean(), rtol=1e-5
    )


def test_a_discrete_target_follows_the_gumbel_softmax():
    """The mean target over many seeds is that of the softmax's probabilities."""
    agent = make(CHOICE)
    outputs = tf.tile(tf.constant([[0.4, -0.5]]), [40_000, 1])
    choices = unit_actions.of(CHOICE)
    drawn = choices.smoothed(outputs, tf.constant([1, 2], tf.int64), 0.0)
    assert set(map(tuple, drawn.numpy())) == {(0.0, 1.0), (1.0, 0.0)}
    # The largest of logits with Gumbel noise is drawn by their softmax.
    share = 1 / (1 + np.exp(-0.9))
    np.testing.assert_allclose(np.mean(drawn[:, 0]), share, atol=0.01)
    policy = agent.collect_policy
    assert policy.action_spec == agent.action_spec


def test_shares_of_a_choice_have_the_temperature_10():
    choices = unit_actions.of(CHOICE)
    outputs = tf.constant(RNG.normal(size=[20_000, 2]), tf.float32)
    shares = choices.activated(outputs, tf.constant([3, 4], tf.int64)).numpy()
    np.testing.assert_allclose(shares.sum(axis=-1), 1.0, rtol=1e-6)
    # The difference of two Gumbel numbers is logistic, with a variance of pi^2 / 3.
    noise = 10 * np.log(shares[:, 0] / shares[:, 1]) - (outputs[:, 0] - outputs[:, 1])
    np.testing.assert_allclose(np.var(noise), np.pi**2 / 3, rtol=0.05)
    np.testing.assert_allclose(np.mean(noise), 0.0, atol=0.05)


@pytest.mark.parametrize("spec", [FORCE, CHOICE])
def test_noise_of_targets_is_clipped_and_actions_stay_possible(spec):
    conversion = unit_actions.of(spec)
    outputs = tf.zeros([30_000, 2])
    seed = tf.constant([5, 6], tf.int64)
    loud = conversion.smoothed(outputs, seed, 100.0, 0.3).numpy()
    if spec is FORCE:
        sizes = np.abs(loud)
        assert sizes.max() == np.float32(0.3)
        assert np.mean(sizes == sizes.max()) > 0.99
        wide = conversion.smoothed(outputs, seed, 100.0).numpy()
        assert np.abs(wide).max() <= 1.0
    else:
        assert set(map(tuple, loud)) == {(0.0, 1.0), (1.0, 0.0)}
        # Noise of half a unit against shares that differ by little: nearly even.
        np.testing.assert_allclose(loud.mean(axis=0), 0.5, atol=0.02)


@pytest.mark.parametrize("spec", [FORCE, CHOICE])
def test_policies_act_by_the_encoder_in_use(spec):
    agent = make(spec, exploration_noise_std=0.0)
    step = ts.restart(tf.constant(OBSERVED[:, 0], tf.float32), batch_size=5)
    z = embed(WEIGHTS["states"][1], OBSERVED[:, 0])
    outputs = affine(WEIGHTS["actor"][0], z)
    greedy = agent.policy.action(step).action
    explored = agent.collect_policy.action(step, seed=1).action
    if spec is FORCE:
        expected = [1, 0] + np.tanh(outputs) * [2, 0.5]
        np.testing.assert_allclose(greedy, expected, rtol=1e-5)
        np.testing.assert_allclose(explored, expected, rtol=1e-5)
    else:
        np.testing.assert_array_equal(greedy, 1 + outputs.argmax(axis=1))
        assert explored.dtype == greedy.dtype
        assert set(explored.numpy()) <= {1, 2}


def test_predicted_returns_are_in_the_rewards_units():
    agent = make()
    step = ts.restart(tf.constant(OBSERVED[:, 0], tf.float32), batch_size=5)
    z = embed(WEIGHTS["states"][1], OBSERVED[:, 0])
    action = np.tanh(affine(WEIGHTS["actor"][0], z))
    q = q_values(WEIGHTS["pairs"][1], WEIGHTS["critic"][0], z, action)
    np.testing.assert_allclose(
        agent.predicted_returns(step), NOW * q.mean(axis=0), rtol=1e-5
    )


def test_lap_priorities_by_hand():
    found = losses.lap_priorities(tf.constant([0.0, -0.5, 1.5, -3.0]))
    np.testing.assert_allclose(found, [1.0, 1.0, 1.5, 3.0])


def test_the_first_update_of_adamw_worked_by_hand():
    """Decay and Adam, as the presets have them."""

    def optimizer(rate):
        return keras.optimizers.AdamW(rate, weight_decay=0.01)

    agent = make(optimizer=optimizer)
    agent.train(frames())
    steps = slope(critic_loss, WEIGHTS, "critic")
    for variable, value, step in zip(
        agent._critic.variables, WEIGHTS["critic"][0], steps, strict=True
    ):
        # In its first step Adam moves each weight by the rate.
        expected = value * (1 - RATE * 0.01) - RATE * np.sign(step)
        np.testing.assert_allclose(variable, expected, rtol=1e-3, atol=1e-4)


def test_wrong_arguments_are_refused():
    for kwargs, words in (
        ({"target_update_tau": 0.5}, "target_update_tau: got 0.5, expected 1"),
        ({"horizon": 0}, "horizon"),
        ({"image_shift": -1}, "image_shift"),
        ({"activation_penalty": -1.0}, "activation_penalty"),
        ({"target_update_period": None}, "target_update_period"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            make(**kwargs)
    unbounded = tf.TensorSpec([2], tf.float32)
    for spec in (unbounded, {"a": FORCE}, BoundedTensorSpec([2], tf.int32, 0, 1)):
        with pytest.raises(ValueError, match="action_spec: got"):
            unit_actions.of(spec)
    agent = make()
    steps = trajectory.to_transition(
        tf.nest.map_structure(lambda t: t[:, :2], frames())
    )
    with pytest.raises(TypeError, match="expected a Trajectory of 4 frames"):
        agent.train(steps)


@pytest.mark.parametrize("spec", some_slow([FORCE, CHOICE], fast=[FORCE]))
def test_it_learns_which_action_pays(spec):
    """Episodes of one step, in which the best action depends on the observation."""
    made = mrq.make_networks(OBSERVATION, spec, hidden_size=16, seed=1)
    agent = agents.MrqAgent(
        ts.time_step_spec(OBSERVATION),
        spec,
        *made,
        *(keras.optimizers.AdamW(3e-3, weight_decay=1e-4) for _ in range(3)),
        horizon=1,
        n_step_update=1,
        target_update_period=20,
        seed=1,
    )
    agent.initialize()

    def pay(side, action):
        if spec is FORCE:
            return np.mean(side * (action - [1, 0]) / [2, 0.5], axis=-1)
        return np.where(action == 1 + (side[:, 0] > 0), 1.0, -1.0)

    def batch(rng):
        side = rng.choice([-1.0, 1.0], size=[64, 1])
        if spec is FORCE:
            action = rng.uniform([-1, -0.5], [3, 0.5], size=[64, 2])
        else:
            action = rng.integers(1, 3, size=[64])
        reward = pay(side, action)
        both = np.stack([np.hstack([side, side]), np.hstack([side, side])], axis=1)
        return trajectory.Trajectory(
            step_type=tf.tile([[0, 2]], [64, 1]),
            observation=tf.constant(both, tf.float32),
            action=tf.constant(np.stack([action, action], axis=1), spec.dtype),
            policy_info=(),
            next_step_type=tf.tile([[2, 0]], [64, 1]),
            reward=tf.constant(np.stack([reward, reward], axis=1), tf.float32),
            discount=tf.tile([[0.0, 1.0]], [64, 1]),
        )

    train = tf.function(agent.train, autograph=False)
    rng = np.random.default_rng(2)
    for _ in range(300):
        frames_now = batch(rng)
        agent.update_normalizers(frames_now)
        loss = train(frames_now)
    assert train.experimental_get_tracing_count() == 1
    assert loss.extra.td_error.numpy().std() < 0.5
    sides = np.array([[-1.0, -1.0], [1.0, 1.0]])
    step = ts.restart(tf.constant(sides, tf.float32), batch_size=2)
    found = agent.policy.action(step).action.numpy()
    if spec is FORCE:
        units = (found - [1, 0]) / [2, 0.5]
        assert (units * sides > 0.8).all()
    else:
        np.testing.assert_array_equal(found, [1, 2])
