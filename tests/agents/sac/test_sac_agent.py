"""SAC's losses, gradients and updates, against the same equations in NumPy's doubles.

The networks are linear, and the noise of the actions is fixed.
"""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import processors
from tfrl import agents
from tfrl.agents import checks
from tfrl.agents.sac import sac_agent
from tfrl.distributions import sampling
from tfrl.networks import (
    ActorDistributionNetwork,
    ActorDistributionRnnNetwork,
    ActorNetwork,
    CriticEnsembleNetwork,
    CriticNetwork,
    CriticRnnNetwork,
    NormalProjectionNetwork,
    StateDependentNoiseProjectionNetwork,
)
from tfrl.policies import ou_noise_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import variables
from tfrl.utils.random_numbers import seeds as agent_seeds

FIRST, MID, LAST = 0, 1, 2
OBSERVATION = tf.TensorSpec([3], tf.float32)
# Bounds that are neither symmetric nor equal.
ACTION = tensor_spec.BoundedTensorSpec([2], tf.float32, [-2.0, 0.0], [2.0, 1.0])
MIDDLE, MAGNITUDE = np.array([0.0, 0.5]), np.array([2.0, 0.5])
SPECS = (OBSERVATION, ACTION)
RNG = np.random.default_rng(0)
NOISE = 0.5
GAMMA, SCALE, ALPHA = 0.9, 3.0, 0.4

TANH_NORMAL = functools.partial(
    agents.sac.TanhNormalProjectionNetwork, std_transform=sac_agent.std_clip_transform
)
ACTOR = {
    "kernel": RNG.normal(size=[3, 4]) * 0.5,
    "bias": np.array([0.3, -0.4, -0.5, -1.0]),
}
CRITICS, TARGETS = (
    [
        {"kernel": RNG.normal(size=[5, 1]), "bias": RNG.normal(size=[1])}
        for _ in range(2)
    ]
    for _ in range(2)
)

# A transition, a termination, a truncation and a boundary.
FRAMES = trajectory.Trajectory(
    step_type=np.array([[MID, MID], [MID, LAST], [FIRST, LAST], [LAST, FIRST]]),
    observation=RNG.normal(size=[4, 2, 3]).astype(np.float32),
    action=np.array([[-1, 0.2], [1.5, 0.9], [0.1, 0.5], [0, 0.1]], np.float32)
    .repeat(2, axis=0)
    .reshape([4, 2, 2]),
    policy_info=(),
    next_step_type=np.array([[MID, MID], [LAST, FIRST], [LAST, FIRST], [FIRST, MID]]),
    reward=np.array([[1, 9], [-2, 9], [0.5, 9], [100, 9]], np.float32),
    discount=np.array([[1, 1], [0, 1], [1, 1], [1, 1]], np.float32),
)
FRAMES = tf.nest.map_structure(
    lambda x: tf.constant(x, tf.int32 if x.dtype == np.int64 else tf.float32), FRAMES
)
VALID = np.array([1, 1, 1, 0])


def tanh_actor(observation=OBSERVATION, action=ACTION, layers=(), **kwargs):
    return ActorDistributionNetwork(
        observation,
        action,
        fc_layer_params=layers,
        continuous_projection_net=TANH_NORMAL,
        seed=1,
        **kwargs,
    )


def critic(layers=(), **kwargs):
    return CriticNetwork(SPECS, joint_fc_layer_params=layers, **kwargs)


def make(
    kind=agents.SacAgent, optimizer=keras.optimizers.SGD, action_spec=ACTION, **kwargs
):
    defaults = {
        "critic_network": critic(seed=2),
        "actor_network": tanh_actor(),
        "actor_optimizer": optimizer(0.1),
        "critic_optimizer": optimizer(0.1),
        "alpha_optimizer": optimizer(0.1),
        "gamma": GAMMA,
        "reward_scale_factor": SCALE,
        "initial_log_alpha": float(np.log(ALPHA)),
        "seed": 3,
    }
    return kind(ts.time_step_spec(OBSERVATION), action_spec, **{**defaults, **kwargs})


def assign(network, weights):
    for variable, value in zip(network.variables, weights.values(), strict=True):
        variables.as_tf_variable(variable).assign(value)


def worked(**kwargs):
    """An agent with the weights above."""
    agent = make(**kwargs)
    assign(agent._actor_network, ACTOR)
    for (network, target), own, others in zip(
        agent._target_pairs, CRITICS, TARGETS, strict=True
    ):
        assign(network, own)
        assign(target, others)
    return agent


@pytest.fixture
def _fixed_noise(monkeypatch):
    monkeypatch.setattr(
        sampling.seeds,
        "normal",
        lambda seed, shape, dtype: tf.fill(shape, tf.constant(NOISE, dtype)),
    )


fixed_noise = pytest.mark.usefixtures("_fixed_noise")


# --- The equations in NumPy.


def draw(actor, observation):
    """Returns actions, and log densities of the actions scaled to [-1, 1]."""
    output = observation.astype(np.float64) @ actor["kernel"] + actor["bias"]
    mean, log_std = np.split(output, 2, axis=-1)
    x = mean + np.exp(log_std) * NOISE
    log_prob = -(NOISE**2) / 2 - log_std - np.log(2 * np.pi) / 2
    log_prob = log_prob + 2 * np.log(np.cosh(x))
    return MIDDLE + MAGNITUDE * np.tanh(x), log_prob.sum(axis=-1)


def q(weights, observation, action):
    inputs = np.concatenate([observation, action], axis=-1)
    return (inputs @ weights["kernel"] + weights["bias"])[:, 0]


def td_errors(critics=CRITICS):
    now, later = np.moveaxis(FRAMES.observation.numpy(), 1, 0)
    action, log_prob = draw(ACTOR, later)
    soft = np.minimum(*(q(w, later, action) for w in TARGETS)) - ALPHA * log_prob
    reward, discount = FRAMES.reward.numpy()[:, 0], FRAMES.discount.numpy()[:, 0]
    target = SCALE * reward + GAMMA * discount * soft
    return VALID * [target - q(w, now, FRAMES.action.numpy()[:, 0]) for w in critics]


def critic_loss(critics=CRITICS):
    return 0.5 * np.mean(np.sum(td_errors(critics) ** 2, axis=0))


def actor_loss(actor=ACTOR, critics=CRITICS):
    now = FRAMES.observation.numpy()[:, 0]
    action, log_prob = draw(actor, now)
    smallest = np.minimum(*(q(w, now, action) for w in critics))
    return np.mean(VALID * (ALPHA * log_prob - smallest))


def alpha_loss(factor, target_entropy=-1.0):
    _, log_prob = draw(ACTOR, FRAMES.observation.numpy()[:, 0])
    return np.mean(VALID * factor * (-log_prob - target_entropy))


def slopes(function, weights, step=1e-5):
    """Central differences of `function` with respect to each of the weights."""
    result = {}
    for name, value in weights.items():
        result[name] = np.zeros_like(value)
        for index in np.ndindex(value.shape):
            moved = [{**weights, name: value.copy()} for _ in range(2)]
            moved[0][name][index] += step
            moved[1][name][index] -= step
            result[name][index] = (function(moved[0]) - function(moved[1])) / 2 / step
    return result


# --- The losses and their gradients.


@fixed_noise
@pytest.mark.parametrize("use_log_alpha", [True, False])
def test_losses_of_a_termination_a_truncation_and_a_boundary(use_log_alpha):
    agent = worked(use_log_alpha_in_alpha_loss=use_log_alpha)
    loss, extra = agent.loss(FRAMES)
    factor = np.log(ALPHA) if use_log_alpha else ALPHA
    parts = [critic_loss(), actor_loss(), alpha_loss(factor)]
    np.testing.assert_allclose(extra[:3], parts, rtol=1e-5)
    np.testing.assert_allclose(loss, sum(parts), rtol=1e-5)
    errors = td_errors()
    np.testing.assert_allclose(extra.td_loss, (errors**2).sum(axis=0), rtol=1e-5)
    np.testing.assert_allclose(
        extra.td_error, np.where(np.argmax(abs(errors), 0), *errors[::-1]), rtol=1e-5
    )


def test_targets_worked_by_hand():
    """Critics 10 and 20, targets 4 and 3, a temperature near 0: y = 3 r + 0.9 d 3."""
    agent = worked(initial_log_alpha=-30.0)
    for (network, target), value, later in zip(
        agent._target_pairs, (10, 20), (4, 3), strict=True
    ):
        assign(network, {"kernel": np.zeros([5, 1]), "bias": [value]})
        assign(target, {"kernel": np.zeros([5, 1]), "bias": [later]})
    td_loss = agent.loss(FRAMES).extra.td_loss
    targets = np.array([3 + 2.7, -6, 1.5 + 2.7])
    expected = [*((targets - 10) ** 2 + (targets - 20) ** 2), 0]
    np.testing.assert_allclose(td_loss, expected, rtol=1e-6)


@fixed_noise
def test_gradients_are_the_slopes_of_the_losses():
    """With SGD, a weight changes by the learning rate times the gradient."""
    agent = worked()
    agent.train(FRAMES)
    new_critics = []
    for i, (network, _) in enumerate(agent._target_pairs):
        slope = slopes(
            lambda w, i=i: critic_loss([*CRITICS[:i], w, *CRITICS[i + 1 :]]),
            CRITICS[i],
        )
        new = {name: CRITICS[i][name] - 0.1 * slope[name] for name in slope}
        new_critics.append(new)
        for variable, expected in zip(network.variables, new.values(), strict=True):
            np.testing.assert_allclose(variable, expected, rtol=1e-4, atol=1e-5)
    # The actor sees the new critics, and the temperature the new actor.
    slope = slopes(lambda w: actor_loss(w, new_critics), ACTOR)
    new_actor = {name: ACTOR[name] - 0.1 * slope[name] for name in slope}
    for variable, expected in zip(
        agent._actor_network.variables, new_actor.values(), strict=True
    ):
        np.testing.assert_allclose(variable, expected, rtol=1e-4, atol=1e-5)
    _, log_prob = draw(new_actor, FRAMES.observation.numpy()[:, 0])
    slope = np.mean(VALID * (-log_prob + 1))
    np.testing.assert_allclose(
        agent._temperature.log, np.log(ALPHA) - 0.1 * slope, rtol=1e-4, atol=1e-5
    )


def changed_at_the_boundary(frames):
    def change(tensor):
        rows = tf.reshape(tf.constant([0, 0, 0, 1], tensor.dtype), [4, 1])
        return tensor + tf.reshape(rows, [4] + [1] * (tensor.shape.rank - 1))

    names = ("observation", "action", "reward")
    return frames._replace(**{name: change(getattr(frames, name)) for name in names})


def test_boundary_changes_nothing():
    values = []
    for frames in (FRAMES, changed_at_the_boundary(FRAMES)):
        agent = worked()
        extra = agent.train(frames).extra
        values.append([*agent.variables(), *extra[:3], extra.td_error])
    for some, other in zip(*values, strict=True):
        np.testing.assert_array_equal(some, other)


@fixed_noise
def test_weights_of_examples_count_in_all_losses():
    agent = worked()
    alone = agent.loss(FRAMES, weights=[4.0, 0, 0, 0]).extra
    row = tf.nest.map_structure(lambda t: t[:1], FRAMES)
    np.testing.assert_allclose(alone[:3], agent.loss(row).extra[:3], rtol=1e-5)


def test_losses_have_weights():
    some = worked().loss(FRAMES).extra
    other = worked(critic_loss_weight=1.0, actor_loss_weight=3.0, alpha_loss_weight=5.0)
    np.testing.assert_allclose(
        other.loss(FRAMES).extra[:3], np.array(some[:3]) * [2, 3, 5], rtol=1e-5
    )


@fixed_noise
def test_n_steps():
    """r1 + gamma r2, then gamma^2 times the soft value of the last observation."""
    frames = tf.nest.map_structure(lambda t: tf.repeat(t[:1], 3, axis=1)[:, :3], FRAMES)
    frames = frames._replace(
        reward=tf.constant([[1.0, 2.0, 50.0]]),
        observation=tf.concat([FRAMES.observation[:1], FRAMES.observation[1:2, :1]], 1),
    )
    error = worked(n_step_update=2).loss(frames).extra.td_error
    first, _, last = frames.observation.numpy()[0]
    action, log_prob = draw(ACTOR, last[np.newaxis])
    soft = min(q(w, last[np.newaxis], action)[0] for w in TARGETS) - ALPHA * log_prob[0]
    target = SCALE * (1 + GAMMA * 2) + GAMMA**2 * soft
    errors = [
        target - q(w, first[np.newaxis], frames.action.numpy()[:, 0])[0]
        for w in CRITICS
    ]
    np.testing.assert_allclose(error, [max(errors, key=abs)], rtol=1e-5)


# --- Ensembles.


@fixed_noise
def test_ensemble_of_two_gives_the_losses_of_twins():
    network = CriticEnsembleNetwork(SPECS, 2, fc_layer_params=(), seed=1)
    agent = make(critic_network=network)
    assign(agent._actor_network, ACTOR)
    ((online, target),) = agent._target_pairs
    for stacked, each in ((online, CRITICS), (target, TARGETS)):
        kernels = np.stack([w["kernel"] for w in each])
        biases = np.stack([w["bias"][np.newaxis] for w in each])
        assign(stacked, {"kernel": kernels, "bias": biases})
    twins = worked().loss(FRAMES).extra
    for ours, theirs in zip(agent.loss(FRAMES).extra, twins, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.slow
def test_targets_take_the_minimum_over_different_subsets():
    """Of targets 1, 2 and 3, two are drawn: the minimum is 1 twice as often as 2."""
    network = CriticEnsembleNetwork(SPECS, 3, fc_layer_params=(), seed=1)
    agent = make(critic_network=network, num_min=2, initial_log_alpha=-30.0)
    ((online, target),) = agent._target_pairs
    zeros = {"kernel": np.zeros([3, 5, 1]), "bias": np.zeros([3, 1, 1])}
    assign(online, zeros)
    assign(target, {**zeros, "bias": np.reshape([1.0, 2.0, 3.0], [3, 1, 1])})
    frames = FRAMES._replace(reward=tf.zeros([4, 2]))
    loss = tf.function(lambda seed: agent.loss(frames, seed=seed), autograph=False)
    drawn = [loss(tf.constant(i)).extra.td_error[0] / GAMMA for i in range(40)]
    values, counts = np.unique(np.round(drawn, 4), return_counts=True)
    np.testing.assert_array_equal(values, [1, 2])
    assert 18 < counts[0] < 36
    # The actor's loss has the mean of all.
    assign(online, {**zeros, "bias": np.reshape([1.0, 2.0, 6.0], [3, 1, 1])})
    np.testing.assert_allclose(
        agent.loss(FRAMES).extra.actor_loss, -3 * 3 / 4, rtol=1e-6
    )


# --- Networks, policies, variables.


def test_twins_start_different_and_targets_equal():
    agent = make()
    (first, _), (second, _) = agent._target_pairs
    assert np.all(first.variables[0] != second.variables[0])
    agent.initialize()
    for network, target in agent._target_pairs:
        for own, other in zip(network.variables, target.variables, strict=True):
            np.testing.assert_array_equal(own, other)


def test_fixed_temperature():
    agent = make(alpha_optimizer=None)
    loss = agent.train(FRAMES)
    assert loss.extra.alpha_loss == 0
    np.testing.assert_allclose(agent._temperature.log, np.log(ALPHA), rtol=1e-6)
    assert any(v is agent._temperature.log for v in agent.variables())
    assert "alpha_learning_rate" not in agent.diagnose()


@pytest.mark.parametrize("greedy_eval", [True, False])
def test_policy_is_greedy_if_asked(greedy_eval):
    agent = make(greedy_eval=greedy_eval)
    time_step = ts.restart(FRAMES.observation[:, 0], 4)
    actions = [agent.policy.action(time_step, seed=i).action.numpy() for i in (1, 2)]
    assert np.all(actions[0] == actions[1]) == greedy_eval
    sampled = [
        agent.collect_policy.action(time_step, seed=i).action.numpy() for i in (1, 2)
    ]
    assert np.all(sampled[0] != sampled[1])


@pytest.mark.slow
def test_exploration_changes_the_collecting_policy_alone():
    agent = make(exploration=lambda policy: ou_noise_policy.OUNoisePolicy(policy, 3.0))
    assert isinstance(agent.collect_policy, ou_noise_policy.OUNoisePolicy)
    assert agent.loss(FRAMES).loss == make().loss(FRAMES).loss
    time_step = ts.restart(FRAMES.observation[:, 0], 4)
    actions = [
        policy.action(time_step, seed=1).action.numpy()
        for policy in (agent.policy, make().policy, agent.collect_policy)
    ]
    np.testing.assert_array_equal(actions[0], actions[1])
    assert np.any(actions[2] != actions[1])


def test_default_target_entropy_is_minus_half_of_the_dimensions():
    assert make()._temperature.target == -1


@pytest.mark.slow
def test_seed_decides_the_losses_and_each_update_draws_other_numbers():
    losses = [make(seed=seed).loss(FRAMES).loss.numpy() for seed in (3, 3, 4)]
    assert losses[0] == losses[1] != losses[2]
    agent = make()
    first = agent.loss(FRAMES).loss.numpy()
    agent.train_step_counter.assign_add(1)
    assert agent.loss(FRAMES).loss.numpy() != first
    assert agent.loss(FRAMES, seed=5).loss == agent.loss(FRAMES, seed=5).loss


def test_diagnose():
    agent = worked()
    values = {k: float(v) for k, v in agent.diagnose(FRAMES).items()}
    now = FRAMES.observation.numpy()[:3, 0]
    expected = np.mean([q(w, now, FRAMES.action.numpy()[:3, 0]) for w in CRITICS])
    np.testing.assert_allclose(values.pop("q_value"), expected, rtol=1e-5)
    np.testing.assert_allclose(values.pop("alpha"), ALPHA, rtol=1e-6)
    error = np.abs(agent.loss(FRAMES).extra.td_error).sum() / 3
    np.testing.assert_allclose(values.pop("td_error"), error, rtol=1e-5)
    assert -10 < values.pop("entropy") < 2 * np.log(2)
    rates = ("learning_rate", "actor_learning_rate", "alpha_learning_rate")
    np.testing.assert_allclose([values.pop(rate) for rate in rates], 0.1, rtol=1e-6)
    assert values.pop("entropy_target") == -1.0
    norms = ("gradient_norm", "actor_gradient_norm", "alpha_gradient_norm")
    assert min(values.pop(norm) for norm in norms) > 0
    # The others are tested by themselves.
    assert values.keys() == {
        "actions_at_bound",
        "actions_reach",
        "explained_variance",
        "observation_size",
        "reward_size",
    }


@pytest.mark.slow
@processors.multiplies_in_half_precision
def test_nested_observations_and_actions_and_mixed_precision():
    observation = {"a": OBSERVATION, "b": tf.TensorSpec([2, 2], tf.float32)}
    action = {
        "x": ACTION,
        "y": tensor_spec.BoundedTensorSpec([], tf.float32, -1.0, 3.0),
    }
    layers = {"a": keras.layers.Flatten(), "b": keras.layers.Flatten()}
    preprocessing = {
        "preprocessing_layers": layers,
        "preprocessing_combiner": keras.layers.Concatenate(),
        "dtype": "mixed_bfloat16",
    }
    agent = agents.SacAgent(
        ts.time_step_spec(observation),
        action,
        CriticNetwork(
            (observation, action), joint_fc_layer_params=(4,), seed=1, **preprocessing
        ),
        tanh_actor(observation, action, (4,), **preprocessing),
        *(keras.optimizers.Adam(1e-3) for _ in range(3)),
        seed=1,
    )
    assert agent._temperature.target == -1.5
    assert agent._log_magnitude == pytest.approx(np.log(2 * 0.5 * 2), rel=1e-6)
    frames = tensor_spec.sample_spec_nest(
        agent.collect_data_spec, outer_dims=[3, 2], seed=1
    )
    frames = frames._replace(
        step_type=tf.ones([3, 2], tf.int32), next_step_type=tf.ones([3, 2], tf.int32)
    )
    frames = tf.nest.map_structure(
        lambda t: tf.clip_by_value(t, -3, 3) if t.dtype.is_floating else t, frames
    )
    info = agent.train(frames)
    assert info.loss.dtype == tf.float32
    assert np.all(np.isfinite(info.extra.td_error))


# --- TF-Agents' methods for the three losses.


def public_losses(agent, transition, **kwargs):
    time_step, action_step, next_time_step = transition
    return {
        "critic_loss": agent.critic_loss(
            time_step, action_step.action, next_time_step, **kwargs
        ),
        "actor_loss": agent.actor_loss(time_step),
        "alpha_loss": agent.alpha_loss(time_step),
    }


@pytest.mark.slow
def test_public_losses_are_those_of_the_parts_before_their_weights():
    agent = worked(actor_loss_weight=2.0, alpha_loss_weight=3.0)
    transition = tf.nest.map_structure(
        lambda x: tf.squeeze(x, 1), trajectory.to_transition(FRAMES)
    )
    found = public_losses(agent, transition)
    extra = agent.loss(FRAMES).extra
    for name, weight in {"critic_loss": 0.5, "actor_loss": 2, "alpha_loss": 3}.items():
        np.testing.assert_allclose(
            weight * found[name], getattr(extra, name), rtol=1e-6, err_msg=name
        )
    same = {"td_errors_loss_fn": tf.math.squared_difference, "gamma": GAMMA}
    assert (
        public_losses(agent, transition, **same)["critic_loss"] == found["critic_loss"]
    )
    # Without discounting and without rewards, the target is the soft value, if any.
    other = public_losses(agent, transition, gamma=1.0, reward_scale_factor=0.0)
    plain = worked(gamma=1.0, reward_scale_factor=0.0).loss(FRAMES).extra
    np.testing.assert_allclose(0.5 * other["critic_loss"], plain.critic_loss, rtol=1e-6)
    with pytest.raises(ValueError, match=r"td_errors_loss_fn: got .* constructor"):
        public_losses(agent, transition, td_errors_loss_fn=tf.abs)


def test_the_loss_of_a_fixed_temperature_can_be_had():
    agent = worked(alpha_optimizer=None)
    steps = trajectory.to_transition(FRAMES).time_step
    steps = tf.nest.map_structure(lambda x: tf.squeeze(x, 1), steps)
    assert agent.loss(FRAMES).extra.alpha_loss == 0
    assert agent.alpha_loss(steps) != 0


# --- Sequences.


def recurrent():
    return agents.SacAgent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        CriticRnnNetwork(
            SPECS,
            observation_fc_layer_params=None,
            action_fc_layer_params=None,
            joint_fc_layer_params=(4,),
            lstm_size=(3,),
            output_fc_layer_params=None,
            seed=1,
        ),
        ActorDistributionRnnNetwork(
            OBSERVATION,
            ACTION,
            input_fc_layer_params=(4,),
            lstm_size=(3,),
            output_fc_layer_params=None,
            continuous_projection_net=TANH_NORMAL,
            seed=1,
        ),
        *(keras.optimizers.SGD(0.1) for _ in range(3)),
        seed=1,
        gamma=0.9,
    )


@pytest.mark.slow
@fixed_noise
def test_recurrent_losses_of_two_episodes_are_those_of_each_alone():
    """The boundary between them resets the states and does not count."""
    agent = recurrent()
    assert agent.train_sequence_length is None

    def frames(step_type, rows):
        step_type = np.array([step_type], np.int32)
        size = step_type.shape[1]
        return trajectory.Trajectory(
            step_type=tf.constant(step_type),
            observation=tf.constant(observations[:, rows]),
            action=tf.constant(actions[:, rows]),
            policy_info=(),
            next_step_type=tf.constant(np.roll(step_type, -1, axis=1)),
            reward=tf.ones([1, size]),
            discount=tf.ones([1, size]),
        )

    rng = np.random.default_rng(1)
    observations = rng.normal(size=[1, 6, 3]).astype(np.float32)
    actions = rng.uniform(0.1, 0.9, size=[1, 6, 2]).astype(np.float32)
    both = frames([FIRST, MID, LAST, FIRST, MID, LAST], slice(0, 6))
    parts = [
        frames([FIRST, MID, LAST], slice(0, 3)),
        frames([FIRST, MID, LAST], slice(3, 6)),
    ]
    whole = agent.loss(both).extra
    pieces = [agent.loss(part).extra for part in parts]
    np.testing.assert_allclose(
        whole.td_error[0],
        [*pieces[0].td_error[0], 0, *pieces[1].td_error[0]],
        rtol=1e-5,
    )
    found = public_losses(agent, trajectory.to_transition(both))
    for name in ("critic_loss", "actor_loss", "alpha_loss"):
        expected = sum(getattr(p, name) for p in pieces)
        np.testing.assert_allclose(getattr(whole, name), expected, rtol=1e-5)
        weight = 0.5 if name == "critic_loss" else 1
        np.testing.assert_allclose(weight * found[name], expected, rtol=1e-5)


@pytest.mark.slow
@fixed_noise
def test_recurrent_losses_leave_out_padding_of_several_frames():
    agent = recurrent()
    rng = np.random.default_rng(1)

    def frames(step_types, next_step_types):
        step_types, next_step_types = np.array([[step_types], [next_step_types]])
        size = step_types.shape[1]
        return trajectory.Trajectory(
            step_type=tf.constant(step_types, tf.int32),
            observation=tf.constant(observations[:, :size]),
            action=tf.constant(actions[:, :size]),
            policy_info=(),
            next_step_type=tf.constant(next_step_types, tf.int32),
            reward=tf.ones([1, size]),
            discount=tf.ones([1, size]),
        )

    observations = rng.normal(size=[1, 6, 3]).astype(np.float32)
    actions = rng.uniform(0.1, 0.9, size=[1, 6, 2]).astype(np.float32)
    padded = frames([FIRST, MID, LAST, LAST, LAST, LAST], [MID, *[LAST] * 5])
    extra = agent.loss(padded).extra
    alone = agent.loss(frames([FIRST, MID, LAST], [MID, LAST, LAST])).extra
    np.testing.assert_allclose(
        extra.td_error[0], [*alone.td_error[0], 0, 0, 0], rtol=1e-5
    )
    for name in ("critic_loss", "actor_loss", "alpha_loss"):
        np.testing.assert_allclose(
            getattr(extra, name), getattr(alone, name), rtol=1e-5, err_msg=name
        )


# --- Errors.


@pytest.mark.parametrize(
    ("spec", "advice"),
    [
        (tensor_spec.BoundedTensorSpec([], tf.int32, 0, 3), "DiscreteSacAgent"),
        (tf.TensorSpec([2], tf.float32), "ReinforceAgent"),
        (tensor_spec.BoundedTensorSpec([1], tf.float32, -np.inf, 1), "ReinforceAgent"),
        (tensor_spec.BoundedTensorSpec([1], tf.float32, 1, 1), "leave out the parts"),
    ],
)
def test_wrong_actions(spec, advice):
    with pytest.raises(ValueError, match=rf"action_spec: SAC expects .*{advice}"):
        make(action_spec=spec)


def test_wrong_networks():
    with pytest.raises(ValueError, match="SAC expects distributions"):
        make(actor_network=ActorNetwork(OBSERVATION, ACTION))
    ensemble = CriticEnsembleNetwork(SPECS, 3, fc_layer_params=())
    with pytest.raises(ValueError, match="num_min: expected at most 3"):
        make(critic_network=ensemble, num_min=4)
    with pytest.raises(ValueError, match="critic_network_2: expected None"):
        make(critic_network=ensemble, critic_network_2=critic())
    quantiles = CriticEnsembleNetwork(SPECS, 3, 5, fc_layer_params=())
    with pytest.raises(ValueError, match="expected one float for each pair"):
        make(critic_network=quantiles)
    with pytest.raises(NotImplementedError, match="n_step_update: expected 1"):
        make(
            critic_network=CriticRnnNetwork(SPECS, lstm_size=(3,)),
            n_step_update=2,
        )


# --- Training.


@pytest.mark.slow
def test_bandit_reaches_the_best_action_and_the_entropy_asked_for():
    """The reward is -(a - 0.3)^2, and the best policy is prop. to exp(reward / alpha).

    That is a normal distribution of variance alpha / 2, whose entropy is the target at
    alpha = 2 exp(2 H) / (2 pi e).
    """
    observation = tf.TensorSpec([1], tf.float32)
    action = tensor_spec.BoundedTensorSpec([1], tf.float32, -1.0, 1.0)
    target_entropy = -1.0
    agent = agents.SacAgent(
        ts.time_step_spec(observation),
        action,
        CriticNetwork((observation, action), joint_fc_layer_params=(32, 32), seed=1),
        tanh_actor(observation, action),
        *(keras.optimizers.Adam(rate) for rate in (5e-3, 3e-3, 5e-3)),
        initial_log_alpha=-2.0,
        target_entropy=target_entropy,
        seed=1,
    )

    @tf.function(jit_compile=True, autograph=False)
    def train(start):
        def update(i):
            actions = agent_seeds.uniform(tf.stack([i, 7]), [64, 2, 1], -1.0, 1.0)
            step_type = tf.tile([[FIRST, LAST]], [64, 1])
            agent.train(
                trajectory.Trajectory(
                    step_type=step_type,
                    observation=tf.ones([64, 2, 1]),
                    action=actions,
                    policy_info=(),
                    next_step_type=step_type[:, ::-1],
                    reward=-tf.square(actions[..., 0] - 0.3),
                    discount=tf.zeros([64, 2]),
                )
            )
            return i + 1

        return tf.while_loop(lambda i: i < start + 500, update, [start])

    for start in range(0, 2000, 500):
        train(tf.constant(start, tf.int64))
    time_step = ts.restart(tf.ones([4000, 1]), 4000)
    drawn = agent.collect_policy.action(time_step, seed=1).action.numpy()
    entropies = -agent._draw(time_step, tf.constant([1, 2]), False)[1]
    np.testing.assert_allclose(np.mean(drawn), 0.3, atol=0.03)
    np.testing.assert_allclose(np.mean(entropies), target_entropy, atol=0.1)
    alpha = 2 * np.exp(2 * target_entropy) / (2 * np.pi * np.e)
    np.testing.assert_allclose(np.exp(agent._temperature.log), alpha, rtol=0.25)


UNBOUNDED = "samples leave the bounds of the actions"
NORMAL = "MultivariateNormalDiag"


def projected(projection):
    return ActorDistributionNetwork(*SPECS, continuous_projection_net=projection)


@pytest.mark.parametrize(
    ("kind", "make_actor", "distribution"),
    [
        (agents.SacAgent, lambda: ActorDistributionNetwork(*SPECS), NORMAL),
        pytest.param(
            agents.SacAgent,
            lambda: ActorDistributionRnnNetwork(*SPECS, lstm_size=(3,)),
            NORMAL,
            marks=pytest.mark.slow,
        ),
        (
            agents.SacAgent,
            lambda: projected(
                functools.partial(
                    StateDependentNoiseProjectionNetwork, scale_distribution=False
                )
            ),
            "StateDependentNormal",
        ),
        pytest.param(
            agents.TqcAgent,
            lambda: ActorDistributionNetwork(*SPECS),
            NORMAL,
            marks=pytest.mark.slow,
        ),
    ],
    ids=["default", "recurrent", "state-dependent noise", "TQC"],
)
def test_an_actor_whose_actions_leave_their_bounds_warns_once(
    monkeypatch, recwarn, kind, make_actor, distribution
):
    monkeypatch.setattr(checks, "_warned", set())
    critics = critic()
    if kind is agents.TqcAgent:
        critics = CriticEnsembleNetwork(SPECS, num_critics=2, num_quantiles=3)
    if make_actor().state_spec:
        critics = CriticRnnNetwork(SPECS, lstm_size=(3,))
    for _ in range(2):
        make(kind, critic_network=critics, actor_network=make_actor())
    (message,) = [str(w.message) for w in recwarn if UNBOUNDED in str(w.message)]
    assert message.startswith(f"{kind.__name__}: actor_network 'Actor")
    assert f"predicts a {distribution}, whose samples" in message
    assert "continuous_projection_net=tfrl.agents.sac.TanhNormalProject" in message


@pytest.mark.parametrize(
    "projection",
    [
        TANH_NORMAL,
        functools.partial(NormalProjectionNetwork, scale_distribution=True),
        StateDependentNoiseProjectionNetwork,
    ],
    ids=["tanh", "scaled to the spec", "state-dependent noise"],
)
def test_an_actor_whose_actions_stay_within_their_bounds_does_not_warn(
    monkeypatch, recwarn, projection
):
    monkeypatch.setattr(checks, "_warned", set())
    make(actor_network=projected(projection))
    assert not [w for w in recwarn if UNBOUNDED in str(w.message)]
