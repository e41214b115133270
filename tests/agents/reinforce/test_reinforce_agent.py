"""REINFORCE's loss over whole, partial and cut episodes, and that it learns.

Actor and value are linear. The figures called TF-Agents' were computed once with
TF-Agents 0.19 on TensorFlow 2.15 from the same weights and frames.
"""

import gc

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import pairs, some_slow
from tfrl.agents.reinforce import reinforce_agent
from tfrl.networks import network
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import common

FIRST, MID, LAST = 0, 1, 2
OBSERVATION = tf.TensorSpec([2], tf.float32, "observation")
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)

KERNEL, BIAS = np.array([[1, -1], [0.5, 2]], np.float32), np.array([0.25, -0.5])
VALUE_KERNEL, VALUE_BIAS = np.array([[0.5], [-0.25]], np.float32), 0.1


def dense(kernel, bias, **kwargs):
    return keras.layers.Dense(
        np.shape(kernel)[1],
        kernel_initializer=keras.initializers.Constant(kernel),
        bias_initializer=keras.initializers.Constant(bias),
        **kwargs,
    )


class Actor(network.Network):
    """Two actions, whose logits are linear in the observation."""

    def __init__(self, regularizer=None, name="Actor"):
        super().__init__(OBSERVATION, (), name)
        self._dense = dense(KERNEL, BIAS, kernel_regularizer=regularizer)

    def call(self, observation):
        import tensorflow_probability as tfp

        logits = self._dense(observation)
        return tfp.distributions.Categorical(logits=logits, dtype=tf.int32), ()


class Value(network.Network):
    """A value that is linear in the observation."""

    def __init__(self, regularizer=None, name="Value"):
        super().__init__(OBSERVATION, (), name)
        self._dense = dense(VALUE_KERNEL, VALUE_BIAS, kernel_regularizer=regularizer)

    def call(self, observation):
        return tf.squeeze(self._dense(observation), axis=-1), ()


def make(actor=None, action_spec=ACTION, optimizer=None, **kwargs):
    return reinforce_agent.ReinforceAgent(
        ts.time_step_spec(OBSERVATION),
        action_spec,
        actor or Actor(),
        optimizer or keras.optimizers.SGD(0.1),
        **kwargs,
    )


# Frames by a letter: a step inside an episode (m) or one that starts one (f), which
# ends (M, F) at a termination or (T) a time limit; a boundary (b); the next frame does
# not follow (x).
STEPS = {
    "f": (FIRST, MID, 1),
    "m": (MID, MID, 1),
    "M": (MID, LAST, 0),
    "F": (FIRST, LAST, 0),
    "T": (MID, LAST, 1),
    "b": (LAST, FIRST, 1),
}


def frames(*rows, seed=0, **fields):
    """Frames `[B, T]` written in letters, the rest at random; boundaries have 0."""
    rng = np.random.default_rng(seed)
    step_type, next_step_type, discount = np.transpose(
        [[STEPS[letter] for letter in row] for row in rows], [2, 0, 1]
    )
    reward = rng.normal(size=step_type.shape) * (step_type != LAST)
    result = trajectory.Trajectory(
        step_type=step_type.astype(np.int32),
        observation=rng.normal(size=[*step_type.shape, 2]).astype(np.float32),
        action=rng.integers(2, size=step_type.shape).astype(np.int32),
        policy_info=(),
        next_step_type=next_step_type.astype(np.int32),
        reward=reward.astype(np.float32),
        discount=discount.astype(np.float32),
    )
    return tf.nest.map_structure(tf.constant, result._replace(**fields))


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def log_probability(experience):
    logits = experience.observation.numpy() @ KERNEL + BIAS
    return np.take_along_axis(
        log_softmax(logits), experience.action.numpy()[..., None], -1
    )[..., 0]


def values(experience):
    return (experience.observation.numpy() @ VALUE_KERNEL)[..., 0] + VALUE_BIAS


def discounted(rewards, gamma, final=0.0):
    """The return from each step of one episode on."""
    result = []
    for reward in rewards[::-1]:
        final = reward + gamma * final
        result.append(final)
    return np.array(result[::-1])


# Plain returns of these rows, by episodes: the frames that count, and their slices.
ROWS = ["fmMbfM", "mTbFbf"]
EPISODES = [(0, 0, 3), (0, 4, 6), (1, 0, 2), (1, 3, 4)]


def policy_gradient(experience, advantage):
    """`-1/N sum A log pi` with `advantage(row, start, end)` of each episode."""
    log_p = log_probability(experience)
    return -sum(
        (advantage(row, start, end) * log_p[row, start:end]).sum()
        for row, start, end in EPISODES
    ) / len(EPISODES)


# --- The policy gradient.


@pytest.mark.parametrize("gamma", [1.0, 0.7])
def test_returns_stop_at_the_end_of_each_episode(gamma):
    experience = frames(*ROWS)
    rewards = experience.reward.numpy()
    info = make(gamma=gamma, normalize_returns=False).loss(experience)
    expected = policy_gradient(
        experience, lambda row, start, end: discounted(rewards[row, start:end], gamma)
    )
    np.testing.assert_allclose(info.extra.policy_gradient_loss, expected, rtol=1e-5)
    np.testing.assert_allclose(info.loss, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        ({}, [22.559471, 0, 0, 0, 0]),
        ({"value": True}, [17.616657, 0, 0, 4.411565, 0]),
        (
            {
                "value": True,
                "entropy_regularization": 0.1,
                "value_estimation_loss_coef": 0.3,
            },
            [17.616657, 0, -0.03244765, 6.617347, 0],
        ),
        (
            {"value": True, "use_advantage_loss": False},
            [22.559471, 0, 0, 4.411565, 0],
        ),
    ],
)
def test_losses_are_those_of_tf_agents(arguments, extra):
    # One episode of three frames; one of two, and the first frame of another.
    experience = frames("fmM", "fMf")._replace(
        observation=tf.constant(
            [[[1, 2], [3, -1], [0.5, 0.5]], [[0.0, 1], [-2, 1], [1, 1]]]
        ),
        action=tf.constant([[0, 1, 0], [1, 0, 1]]),
        reward=tf.constant([[1, 2, 3], [-0.5, 0.25, 1]]),
    )
    if arguments.pop("value", False):
        arguments["value_network"] = Value()
    info = make(gamma=0.9, normalize_returns=False, **arguments).train(experience)
    np.testing.assert_allclose(info.extra, extra, rtol=1e-5)
    np.testing.assert_allclose(info.loss, np.sum(extra), rtol=1e-5)


def test_normalised_update_is_that_of_tf_agents():
    experience = frames("fmM", "fmM")._replace(
        observation=tf.constant(
            [[[1, 2], [3, -1], [0.5, 0.5]], [[0.0, 1], [-2, 1], [1, 1]]]
        ),
        action=tf.constant([[0, 1, 0], [1, 0, 1]]),
        reward=tf.constant([[1, 2, 3], [-0.5, 0.25, 1]]),
    )
    agent = make(gamma=0.9)
    np.testing.assert_allclose(agent.train(experience).loss, 2.5700464, rtol=1e-5)
    kernel, bias = agent.variables()[:2]
    np.testing.assert_allclose(
        kernel, [[0.9827982, -0.9827982], [0.651083, 1.848917]], rtol=1e-5
    )
    np.testing.assert_allclose(bias, [0.24880594, -0.49880594], rtol=1e-5)


def test_normalisation_counts_valid_frames_only():
    experience = frames(*ROWS)
    rewards = experience.reward.numpy()
    returns = [discounted(rewards[row, i:j], 0.9) for row, i, j in EPISODES]
    mean, std = np.mean(np.concatenate(returns)), np.std(np.concatenate(returns))
    normalised = {
        episode: (r - mean) / std for episode, r in zip(EPISODES, returns, strict=True)
    }
    expected = policy_gradient(experience, lambda *episode: normalised[episode])
    np.testing.assert_allclose(
        make(gamma=0.9).loss(experience).loss, expected, rtol=1e-4
    )


def test_equal_returns_normalise_to_zero():
    experience = frames("F", "F", reward=np.ones([2, 1], np.float32))
    np.testing.assert_allclose(make().loss(experience).loss, 0, atol=1e-6)


# --- What is left out.


@pytest.mark.parametrize(
    ("rows", "valid"),
    [
        (["fmMb", "fmmm"], ["1110", "0000"]),  # Not finished in the second row.
        (["Mbfm"], ["1000"]),  # Starts inside an episode, stops inside another.
        (["fMFM"], ["1111"]),  # Without boundaries.
        (["bfMb"], ["0110"]),
    ],
)
@pytest.mark.parametrize(
    "normalize", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_frames_of_incomplete_episodes_and_boundaries_do_not_count(
    rows, valid, normalize
):
    valid = np.array([[int(v) for v in row] for row in valid], bool)
    agent = make(
        value_network=Value(),
        normalize_returns=normalize,
        entropy_regularization=0.1,
    )
    experience = frames(*rows)
    # Whatever the others hold makes no difference.
    changed = experience._replace(
        reward=tf.where(valid, experience.reward, 100.0),
        action=tf.where(valid, experience.action, 1 - experience.action),
    )
    np.testing.assert_allclose(
        agent.loss(changed).extra, agent.loss(experience).extra, rtol=1e-6
    )
    observation = tf.where(valid[..., None], experience.observation, 7.0)
    changed = experience._replace(observation=observation)
    np.testing.assert_allclose(
        agent.loss(changed).extra, agent.loss(experience).extra, rtol=1e-6
    )
    # And what counts does.
    first_valid = tuple(np.argwhere(valid)[0])
    rewards = experience.reward.numpy()
    rewards[first_valid] += 1
    changed = experience._replace(reward=tf.constant(rewards))
    assert agent.loss(changed).loss != agent.loss(experience).loss


def test_cut_in_mid_row_masks_what_stands_before_it():
    # The run was interrupted after two frames, and began again with an episode.
    cut = frames("fmfmMb")
    rest = tf.nest.map_structure(lambda t: t[:, 2:], cut)
    agent = make(normalize_returns=False, value_network=Value())
    expected, info = agent.loss(rest).extra, agent.loss(cut).extra
    np.testing.assert_allclose(info, expected, rtol=1e-6)


def test_resumption_in_mid_episode_counts_what_follows():
    # A cut without a FIRST is seen by its step types alone: FIRST, then MID after LAST.
    cut = frames("fMmM")
    rewards = cut.reward.numpy()[0]
    info = make(normalize_returns=False).loss(cut)
    log_p = log_probability(cut)[0]
    returns = np.concatenate([discounted(rewards[:2], 1), discounted(rewards[2:], 1)])
    np.testing.assert_allclose(info.loss, -(log_p * returns).sum() / 2, rtol=1e-5)


@pytest.mark.parametrize("graph", [False, True])
def test_experience_without_a_complete_episode(graph):
    agent = make()
    train = common.function(agent.train) if graph else agent.train
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"experience: REINFORCE learns from whole episodes, and none of this "
        r"experience is complete \(no next_step_type is LAST\); collect until",
    ):
        train(frames("fmm", "bfm"))


# --- The baseline.


def test_baseline_is_subtracted_and_fitted():
    experience = frames(*ROWS[:1])
    rewards, baseline = experience.reward.numpy(), values(experience)
    agent = make(
        value_network=Value(), normalize_returns=False, value_estimation_loss_coef=0.5
    )
    extra = agent.loss(experience).extra
    episodes = [(0, 3), (4, 6)]
    advantages = [
        discounted(rewards[0, i:j], 1) - baseline[0, i:j] for i, j in episodes
    ]
    log_p = [log_probability(experience)[0, i:j] for i, j in episodes]
    np.testing.assert_allclose(
        extra.policy_gradient_loss,
        -sum((a * p).sum() for a, p in zip(advantages, log_p, strict=True)) / 2,
        rtol=1e-5,
    )
    np.testing.assert_allclose(
        extra.value_estimation_loss,
        0.5 * sum((a**2).sum() for a in advantages) / 2,
        rtol=1e-5,
    )


def test_policy_gradient_does_not_train_the_baseline():
    agent = make(value_network=Value(), value_estimation_loss_coef=0.0)
    before = [v.numpy() for v in agent.variables()[:4]]
    agent.train(frames(*ROWS))
    changed = [
        not np.array_equal(old, new)
        for old, new in zip(before, agent.variables()[:4], strict=True)
    ]
    assert changed == [True, True, False, False]


def test_advantage_function_of_the_user():
    experience = frames(*ROWS)
    seen = {}

    def advantage(returns, value_predictions):
        seen["values"] = value_predictions
        return tf.ones_like(returns)

    agent = make(value_network=Value(), advantage_fn=advantage, normalize_returns=False)
    loss = agent.loss(experience).extra.policy_gradient_loss
    expected = policy_gradient(experience, lambda row, i, j: np.ones(j - i))
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    np.testing.assert_allclose(seen["values"], values(experience), rtol=1e-5)


def test_advantage_function_without_a_value_network_gets_none():
    seen = []
    agent = make(advantage_fn=lambda returns, v: seen.append(v) or returns)
    agent.loss(frames("fM"))
    assert seen == [None]


@pytest.mark.parametrize("gamma", [1.0, 0.5])
def test_truncation_bootstraps_the_value_of_the_boundary_observation(gamma):
    experience = frames("fTbfM")
    rewards, baseline = experience.reward.numpy()[0], values(experience)[0]
    agent = make(
        gamma=gamma,
        value_network=Value(),
        value_estimation_loss_coef=1.0,
        normalize_returns=False,
    )
    returns = np.concatenate(
        [discounted(rewards[:2], gamma, baseline[2]), discounted(rewards[3:], gamma)]
    )
    expected = ((returns - baseline[[0, 1, 3, 4]]) ** 2).sum() / 2
    loss = agent.loss(experience).extra.value_estimation_loss
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


@pytest.mark.parametrize("row", ["fT", "fM", "fTfM", "fMbf"])
def test_nothing_is_bootstrapped_without_a_boundary_or_at_a_termination(row):
    experience = frames(row)
    rewards, baseline = experience.reward.numpy()[0], values(experience)[0]
    agent = make(
        value_network=Value(), value_estimation_loss_coef=1.0, normalize_returns=False
    )
    ends = [i + 1 for i, letter in enumerate(row) if letter in "TM"]
    starts = [0, *ends[:-1]]
    errors = [
        discounted(rewards[i:j], 1) - baseline[i:j]
        for i, j in zip(starts, ends, strict=True)
    ]
    np.testing.assert_allclose(
        agent.loss(experience).extra.value_estimation_loss,
        sum((e**2).sum() for e in errors) / len(ends),
        rtol=1e-5,
    )


def test_value_network_is_in_training_mode_in_train_alone():
    normalised = keras.Sequential(
        [keras.layers.BatchNormalization(), keras.layers.Dense(1)]
    )
    agent = make(value_network=normalised)
    (mean,) = (v for v in agent.variables() if "moving_mean" in v.name)
    agent.loss(frames(*ROWS))
    np.testing.assert_array_equal(mean, [0, 0])
    agent.train(frames(*ROWS))
    assert (mean.numpy() != 0).all()


def test_keras_layer_with_one_unit_is_a_value_network():
    layer = dense(VALUE_KERNEL, VALUE_BIAS)
    experience = frames(*ROWS)
    np.testing.assert_allclose(
        make(value_network=layer).loss(experience).extra,
        make(value_network=Value()).loss(experience).extra,
        rtol=1e-6,
    )


def test_value_network_has_to_give_one_value():
    with pytest.raises(ValueError, match="value_network emits multiple values"):
        make(value_network=keras.layers.Dense(3))


# --- Padding.


def padding(step_type):
    return frames("m" * 5, "m" * 5, seed=1)._replace(
        step_type=tf.fill([2, 5], step_type), next_step_type=tf.fill([2, 5], step_type)
    )


UNFINISHED = frames("fmmmm", "mmfmm", seed=1)
CUT = frames("mbmfm", "ffbmf", seed=1)._replace(
    next_step_type=tf.ones([2, 5], tf.int32)
)


BEHIND = {
    "zeros": (padding(FIRST), 0.3),
    "fixed length": (padding(LAST), 0.3),
    "unfinished": (UNFINISHED, None),
    "unfinished and cut": (CUT, None),
}


@pytest.mark.parametrize(("name", "baseline"), pairs(BEHIND, [True, False]))
def test_what_stands_behind_the_ends_changes_nothing(name, baseline):
    """Not the loss, any part of it, or the update, however much it is."""
    behind, entropy = BEHIND[name]
    short, long = (
        make(
            value_network=Value() if baseline else None,
            gamma=0.9,
            entropy_regularization=entropy,
            normalize_returns=True,
        )
        for _ in range(2)
    )
    experience = frames(*ROWS)
    padded = tf.nest.map_structure(
        lambda *leaves: tf.concat(leaves, axis=1), experience, behind
    )
    np.testing.assert_allclose(
        tf.nest.flatten(short.train(experience)),
        tf.nest.flatten(long.train(padded)),
        rtol=1e-5,
    )
    for ours, theirs in zip(short.variables(), long.variables(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


# --- Entropy, regularisation, weights.


def test_entropy_bonus_is_the_mean_over_all_frames_of_the_valid_ones():
    experience = frames(*ROWS)
    log_p = log_softmax(experience.observation.numpy() @ KERNEL + BIAS)
    entropies = -(np.exp(log_p) * log_p).sum(-1)
    total = sum(entropies[row, i:j].sum() for row, i, j in EPISODES)
    extra = make(entropy_regularization=0.3).loss(experience).extra
    np.testing.assert_allclose(
        extra.entropy_regularization_loss, -0.3 * total / 12, rtol=1e-5
    )


def test_regularization_losses_of_both_networks():
    agent = make(
        Actor(keras.regularizers.L2(0.1)),
        value_network=Value(keras.regularizers.L2(0.2)),
    )
    info = agent.loss(frames(*ROWS))
    np.testing.assert_allclose(
        info.extra.policy_network_regularization_loss,
        0.1 * (KERNEL**2).sum(),
        rtol=1e-6,
    )
    np.testing.assert_allclose(
        info.extra.value_network_regularization_loss,
        0.2 * (VALUE_KERNEL**2).sum(),
        rtol=1e-6,
    )
    np.testing.assert_allclose(info.loss, np.sum(info.extra), rtol=1e-6)


@pytest.mark.parametrize("weights", [[1.0, 0.0], [0.0, 0.5], [[2.0] * 6, [1.0] * 6]])
def test_weights_of_rows_or_frames(weights):
    experience = frames(*ROWS)
    rewards, weights = experience.reward.numpy(), np.array(weights, np.float32)
    by_frame = np.broadcast_to(
        weights[:, None] if weights.ndim == 1 else weights, [2, 6]
    )
    expected = policy_gradient(
        experience,
        lambda row, i, j: by_frame[row, i:j] * discounted(rewards[row, i:j], 1),
    )
    agent = make(normalize_returns=False)
    loss = agent.loss(experience, weights=tf.constant(weights)).loss
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_weights_of_another_shape_are_not_broadcast():
    with pytest.raises(ValueError, match=r"begins \(2, 6\), got \(6,\)"):
        make().loss(frames(*ROWS), weights=tf.ones([6]))


# --- Other actions.


class Normal(network.Network):
    """A normal distribution around the observation, for actions of shape [2]."""

    def __init__(self, analytic=True, name="Normal"):
        super().__init__(OBSERVATION, (), name)
        self._dense = dense(KERNEL, BIAS)
        self._analytic = analytic

    def call(self, observation):
        import tensorflow_probability as tfp

        mean = self._dense(observation)
        normal = tfp.distributions.MultivariateNormalDiag(mean, [1.0, 2.0])
        if self._analytic:
            return normal, ()
        return tfp.distributions.TransformedDistribution(
            normal, tfp.bijectors.Tanh()
        ), ()


CONTINUOUS = tensor_spec.BoundedTensorSpec([2], tf.float32, -1, 1)


def test_continuous_actions():
    actions = np.random.default_rng(1).uniform(-1, 1, [1, 3, 2]).astype(np.float32)
    experience = frames("fmM", action=actions)
    info = make(
        Normal(), CONTINUOUS, normalize_returns=False, entropy_regularization=1.0
    ).loss(experience)
    z = (actions[0] - (experience.observation.numpy()[0] @ KERNEL + BIAS)) / [1, 2]
    log_p = (-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - np.log([1, 2])).sum(-1)
    returns = discounted(experience.reward.numpy()[0], 1)
    np.testing.assert_allclose(
        info.extra.policy_gradient_loss, -(log_p * returns).sum(), rtol=1e-5
    )
    np.testing.assert_allclose(
        info.extra.entropy_regularization_loss,
        -(np.log(2 * np.pi * np.e) + np.log(2)),
        rtol=1e-5,
    )


def test_distribution_without_entropy_cannot_be_regularised():
    actions = np.zeros([1, 2, 2], np.float32)
    agent = make(Normal(analytic=False), CONTINUOUS, entropy_regularization=1.0)
    with pytest.raises(ValueError, match="no analytic entropy; give entropy_regul"):
        agent.loss(frames("fM", action=actions))


class Nested(network.Network):
    """Both kinds of action at once."""

    def __init__(self, name="Nested"):
        super().__init__(OBSERVATION, (), name)
        self._discrete, self._normal = Actor(), Normal()

    def call(self, observation):
        return {
            "choice": self._discrete(observation)[0],
            "force": self._normal(observation)[0],
        }, ()


def test_nested_actions_add_their_log_probabilities():
    spec = {"choice": ACTION, "force": CONTINUOUS}
    force = np.random.default_rng(1).uniform(-1, 1, [1, 3, 2]).astype(np.float32)
    experience = frames("fmM")
    nested = experience._replace(
        action={"choice": experience.action, "force": tf.constant(force)}
    )
    agent = make(Nested(), spec, normalize_returns=False)
    parts = [
        make(normalize_returns=False).loss(experience).loss,
        make(Normal(), CONTINUOUS, normalize_returns=False)
        .loss(experience._replace(action=tf.constant(force)))
        .loss,
    ]
    np.testing.assert_allclose(agent.train(nested).loss, np.sum(parts), rtol=1e-5)
    action = agent.collect_policy.action(ts.restart(tf.zeros([1, 2]), 1)).action
    assert set(action) == {"choice", "force"}


def test_actor_has_to_fit_the_action_spec():
    with pytest.raises(ValueError, match="output does not match action_spec; build it"):
        make(Actor(), CONTINUOUS)


@pytest.mark.parametrize(
    "reward",
    [tf.TensorSpec([2], tf.float32), {"speed": tf.TensorSpec([], tf.float32)}],
)
def test_reward_has_to_be_one_scalar(reward):
    with pytest.raises(
        ValueError,
        match=r"time_step_spec.reward: REINFORCE expects one scalar reward a step, got "
        r".*TensorSpec\(.*; add up its parts, .* whose reward_spec\(\) is a scalar",
    ):
        reinforce_agent.ReinforceAgent(
            ts.time_step_spec(OBSERVATION, reward),
            ACTION,
            Actor(),
            keras.optimizers.SGD(0.1),
        )


# --- Training.

OPTIMIZERS = {
    "adam": lambda: keras.optimizers.Adam(0.1),
    "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "v1": lambda: tf.compat.v1.train.AdamOptimizer(0.1),
}


@pytest.mark.parametrize("optimizer", some_slow(OPTIMIZERS, fast=["adam"]))
def test_one_optimizer_trains_both_networks_and_all_is_listed(optimizer):
    agent = make(value_network=Value(), optimizer=OPTIMIZERS[optimizer]())
    agent.initialize()
    gc.collect()
    everything = [
        x for x in gc.get_objects() if isinstance(x, tf.Variable) and x.is_initialized()
    ]
    before = [v.numpy() for v in everything]
    agent.train(frames(*ROWS))
    changed = {
        id(v)
        for v, old in zip(everything, before, strict=True)
        if not np.array_equal(old, v)
    }
    assert changed <= {id(v) for v in agent.variables()}
    assert {id(v) for v in agent.variables()[:4]} <= changed


def test_layer_that_both_networks_share_is_trained_once():
    class SharingValue(network.Network):
        def __init__(self, actor=None, name="SharingValue"):
            super().__init__(OBSERVATION, (), name)
            self._trunk, self._head = actor._dense, keras.layers.Dense(1)

        def call(self, observation):
            return tf.squeeze(self._head(self._trunk(observation)), axis=-1), ()

    actor = Actor()
    agent = make(actor, value_network=SharingValue(actor))
    agent.train(frames(*ROWS))
    listed = [id(v) for v in agent.variables()]
    # Two layers of two variables, the optimizer's two, and the step counter.
    assert len(listed) == len(set(listed)) == 7


@pytest.mark.parametrize("clipping", [1e-3, 1e3])
def test_each_gradient_is_clipped_to_the_norm(clipping):
    optimizer = keras.optimizers.SGD
    agent = make(optimizer=optimizer(1.0), gradient_clipping=clipping)
    free = make(optimizer=optimizer(1.0))
    before = [v.numpy() for v in agent.variables()[:2]]
    agent.train(frames(*ROWS))
    free.train(frames(*ROWS))
    for old, new, unclipped in zip(
        before, agent.variables()[:2], free.variables()[:2], strict=True
    ):
        expected = min(np.linalg.norm(unclipped - old), clipping)
        np.testing.assert_allclose(np.linalg.norm(new - old), expected, rtol=1e-3)


@pytest.mark.parametrize(
    "compiled", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_train_traces_once_for_a_shape(compiled):
    agent = make(value_network=Value(), optimizer=keras.optimizers.Adam(0.1))
    eager = make(value_network=Value(), optimizer=keras.optimizers.Adam(0.1))
    train = tf.function(agent.train, jit_compile=compiled or None, autograph=False)
    for seed in range(3):
        loss = train(frames(*ROWS, seed=seed)).loss
        np.testing.assert_allclose(
            loss, eager.train(frames(*ROWS, seed=seed)).loss, rtol=1e-4
        )
    assert train.experimental_get_tracing_count() == 1
    assert agent.train_step_counter == 3


@pytest.mark.slow
def test_episodes_of_any_length_need_two_traces_at_most():
    agent, eager = make(value_network=Value()), make(value_network=Value())
    train = tf.function(agent.train, reduce_retracing=True, autograph=False)
    for row in ("fM", "fmMb", "fmmM", "bfmmmM"):
        np.testing.assert_allclose(
            train(frames(row)).extra, eager.train(frames(row)).extra, rtol=1e-4
        )
    assert train.experimental_get_tracing_count() == 2


@pytest.mark.parametrize("optimizer", some_slow(OPTIMIZERS, fast=["adam"]))
def test_restored_agent_continues_bit_by_bit(optimizer, tmp_path):
    agent, restored = (
        make(value_network=Value(), optimizer=OPTIMIZERS[optimizer]()) for _ in "ab"
    )
    for seed in range(2):
        agent.train(frames(*ROWS, seed=seed))
    path = tf.train.Checkpoint(agent=agent).save(str(tmp_path / "checkpoint"))
    status = tf.train.Checkpoint(agent=restored).restore(path)
    status.assert_existing_objects_matched().assert_consumed()
    for seed in range(2, 5):
        agent.train(frames(*ROWS, seed=seed))
        restored.train(frames(*ROWS, seed=seed))
    for a, b in zip(agent.variables(), restored.variables(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("graph", [False, True])
def test_experience_that_is_not_a_number_is_an_error_and_trains_nothing(graph):
    agent = make(value_network=Value(), optimizer=keras.optimizers.Adam(0.1))
    train = common.function(agent.train) if graph else agent.train
    before = [v.numpy() for v in agent.variables()]
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="experience: the ReinforceAgent loss is "
    ):
        train(frames("fM", reward=np.full([1, 2], np.nan, np.float32)))
    for old, new in zip(before, agent.variables(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_arrays_do_as_well_as_tensors():
    arrays = tf.nest.map_structure(lambda t: t.numpy(), frames(*ROWS))
    agent = make(value_network=Value(), entropy_regularization=0.1)
    np.testing.assert_array_equal(
        agent.loss(arrays).extra, agent.loss(frames(*ROWS)).extra
    )


# --- Policies and learning.


def test_collect_policy_samples_and_policy_takes_the_mode():
    agent = make(seed=0)
    step = ts.restart(tf.ones([1000, 2]), 1000)
    probability = np.exp(log_softmax(np.ones(2) @ KERNEL + BIAS))[1]
    share = np.mean(agent.collect_policy.action(step).action)
    np.testing.assert_allclose(share, probability, atol=0.05)
    np.testing.assert_array_equal(
        agent.policy.action(step).action, np.argmax(np.ones(2) @ KERNEL + BIAS)
    )


@pytest.mark.parametrize(
    "baseline", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_learns_which_arm_pays(baseline):
    # Two contexts; the arm of the other one's number pays 1, the own nothing. The
    # policy starts with the wrong preferences.
    rng = np.random.default_rng(0)
    agent = make(
        value_network=Value() if baseline else None,
        optimizer=keras.optimizers.Adam(0.1),
        seed=1,
    )
    train = common.function(agent.train)
    act = common.function(agent.collect_policy.action)
    means = []
    for _ in range(60):
        contexts = rng.integers(2, size=16)
        observation = np.eye(2, dtype=np.float32)[contexts]
        actions = act(ts.restart(tf.constant(observation), 16)).action.numpy()
        rewards = (actions != contexts).astype(np.float32)
        train(
            frames(
                *["F"] * 16,
                observation=observation[:, None],
                action=actions[:, None],
                reward=rewards[:, None],
            )
        )
        means.append(rewards.mean())
    assert np.mean(means[:5]) < 0.5
    assert np.mean(means[-10:]) > 0.95
    best = agent.policy.action(ts.restart(tf.eye(2), 2)).action
    np.testing.assert_array_equal(best, [1, 0])


@pytest.mark.parametrize("graph", [False, True])
def test_huge_observations_with_a_finite_loss_are_an_error_and_train_nothing(graph):
    agent = make(optimizer=keras.optimizers.Adam(0.1), value_network=Value())
    train = common.function(agent.train) if graph else agent.train
    experience = frames("fmM")
    train(experience)
    before = [v.numpy() for v in agent.variables()]
    # A value of 1e19 has a finite squared error, whose gradient has no finite square.
    huge = experience._replace(observation=experience.observation * 3e18)
    assert np.isfinite(agent.loss(huge).loss)
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"ReinforceAgent loss is finite, but .*gradients is not",
    ):
        train(huge)
    for old, new in zip(before, agent.variables(), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("gamma", 2),
        ("gamma", -1.0),
        ("gamma", float("nan")),
        ("gradient_clipping", -1.0),
        ("value_estimation_loss_coef", -1.0),
        ("entropy_regularization", float("nan")),
        ("optimizer", -1e-3),
    ],
)
def test_numbers_out_of_range_are_refused(argument, value):
    name = argument
    if argument == "optimizer":
        name, value = "learning_rate", keras.optimizers.SGD(value)
    with pytest.raises(ValueError, match=f"^{name}: expected a .*, got "):
        make(**{argument: value})


def test_the_log_has_the_current_learning_rate():
    decay = keras.optimizers.schedules.PolynomialDecay(1.0, 4, 0.0)
    agent = make(optimizer=keras.optimizers.SGD(decay))
    agent.train(frames("fmM"))
    assert {k: float(v) for k, v in agent.diagnose().items()} == {"learning_rate": 0.75}
    assert make(optimizer=tf.compat.v1.train.AdamOptimizer(0.1)).diagnose() == {}
