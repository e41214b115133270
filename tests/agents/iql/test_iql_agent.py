"""IQL's losses and updates, against the same equations in NumPy's doubles.

The networks are linear.
"""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents, networks
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import variables

FIRST, MID, LAST = 0, 1, 2
OBSERVATION = tf.TensorSpec([3], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([2], tf.float32, [-2.0, 0.0], [2.0, 1.0])
RNG = np.random.default_rng(1)
GAMMA, SCALE, EXPECTILE, BETA, MOST = 0.9, 3.0, 0.8, 0.7, 2.0
MEANS = {"kernel": RNG.normal(size=[3, 2]), "bias": RNG.normal(size=[2])}
# Before the softplus.
STD_BIAS = np.array([0.3, -0.4])
VALUE = {"kernel": RNG.normal(size=[3, 1]), "bias": RNG.normal(size=[1])}
CRITICS, TARGETS = (
    [
        {"kernel": RNG.normal(size=[5, 1]), "bias": RNG.normal(size=[1])}
        for _ in range(2)
    ]
    for _ in range(2)
)
# A transition, a termination, a truncation and a boundary.
STEP_TYPES = np.array([[MID, MID], [MID, LAST], [FIRST, LAST], [LAST, FIRST]])
OBSERVATIONS = RNG.normal(size=[4, 2, 3])
ACTIONS = np.array([[-1, 0.2], [2.0, 1.0], [0.1, 0.5], [0, 0.1]])
REWARDS, DISCOUNTS = np.array([1, -2, 0.5, 100.0]), np.array([1, 0, 1, 1.0])
VALID = np.array([1, 1, 1, 0])


def frames(observations=OBSERVATIONS, rewards=REWARDS):
    return trajectory.Trajectory(
        step_type=tf.constant(STEP_TYPES, tf.int32),
        observation=tf.constant(observations, tf.float32),
        action=tf.constant(np.stack([ACTIONS] * 2, axis=1), tf.float32),
        policy_info=(),
        next_step_type=tf.constant(
            np.array([[MID, MID], [LAST, FIRST], [LAST, FIRST], [FIRST, MID]]), tf.int32
        ),
        reward=tf.constant(np.stack([rewards] * 2, axis=1), tf.float32),
        discount=tf.constant(np.stack([DISCOUNTS] * 2, axis=1), tf.float32),
    )


def assign(network, *values):
    for variable, value in zip(network.variables, values, strict=True):
        variables.as_tf_variable(variable).assign(value)


def make(action_spec=ACTION, optimizer=keras.optimizers.SGD, **kwargs):
    specs = (OBSERVATION, ACTION)
    projection = functools.partial(
        networks.NormalProjectionNetwork, mean_transform=None
    )
    defaults = {
        "critic_network": networks.CriticNetwork(specs, seed=2),
        "value_network": networks.ValueNetwork(
            OBSERVATION, fc_layer_params=None, seed=4
        ),
        "actor_network": networks.ActorDistributionNetwork(
            *specs, fc_layer_params=None, continuous_projection_net=projection, seed=5
        ),
        "expectile": EXPECTILE,
        "inverse_temperature": BETA,
        "max_weight": MOST,
        "gamma": GAMMA,
        "reward_scale_factor": SCALE,
        "seed": 3,
    }
    for name in ("actor", "critic", "value"):
        defaults[f"{name}_optimizer"] = optimizer(0.1)
    return agents.IqlAgent(
        ts.time_step_spec(OBSERVATION), action_spec, **{**defaults, **kwargs}
    )


@pytest.fixture(scope="module")
def _agent():
    return make()


@pytest.fixture
def agent(_agent):
    """An agent with the weights above."""
    assign(_agent._actor_network, MEANS["kernel"], MEANS["bias"], STD_BIAS)
    assign(_agent._value_network, *VALUE.values())
    for pair, *weights in zip(_agent._target_pairs, CRITICS, TARGETS, strict=True):
        for network, values in zip(pair, weights, strict=True):
            assign(network, *values.values())
    return _agent


def v(weights, observation):
    return (observation @ weights["kernel"] + weights["bias"])[:, 0]


def q(weights, observation, action):
    return v(weights, np.concatenate([observation, action], axis=-1))


NOW, LATER = np.moveaxis(OBSERVATIONS, 1, 0)


def advantages(value=VALUE):
    return np.minimum(*(q(w, NOW, ACTIONS) for w in TARGETS)) - v(value, NOW)


def expectile_loss(error):
    weight = np.where(error < 0, 1 - EXPECTILE, EXPECTILE)
    return np.mean(VALID * weight * error**2)


def value_loss(value=VALUE):
    return expectile_loss(advantages(value))


def actor_loss(means=MEANS, value=VALUE):
    std = np.log1p(np.exp(STD_BIAS))
    z = (ACTIONS - NOW @ means["kernel"] - means["bias"]) / std
    log_prob = (-(z**2) / 2 - np.log(std) - np.log(2 * np.pi) / 2).sum(axis=-1)
    weight = np.minimum(np.exp(BETA * advantages(value)), MOST)
    return np.mean(-VALID * weight * log_prob)


def td_errors(critics=CRITICS, value=VALUE):
    target = SCALE * REWARDS + GAMMA * DISCOUNTS * v(value, LATER)
    return VALID * [target - q(w, NOW, ACTIONS) for w in critics]


def critic_loss(critics=CRITICS, value=VALUE):
    return np.mean(np.sum(td_errors(critics, value) ** 2, axis=0))


def moved(function, weights, rate=0.1, step=1e-6):
    """The weights after a step down central differences of `function`."""
    result = {}
    for name, held in weights.items():
        result[name] = held.copy()
        for index in np.ndindex(held.shape):
            sides = [{**weights, name: held.copy()} for _ in range(2)]
            sides[0][name][index] += step
            sides[1][name][index] -= step
            slope = (function(sides[0]) - function(sides[1])) / 2 / step
            result[name][index] -= rate * slope
    return result


# One discrete action: the critics and the actor have an output for each of three.
CHOICE = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
CHOICES = np.array([2, 0, 1, 2])
LOGITS, *OF_ALL = (
    {"kernel": RNG.normal(size=[3, 3]), "bias": RNG.normal(size=[3])} for _ in range(5)
)


@pytest.fixture(scope="module")
def _chooser():
    specs = (OBSERVATION, CHOICE)
    return make(
        CHOICE,
        critic_network=networks.QNetwork(*specs, fc_layer_params=None, seed=2),
        actor_network=networks.ActorDistributionNetwork(
            *specs, fc_layer_params=None, seed=5
        ),
    )


@pytest.fixture
def chooser(_chooser):
    """An agent of a discrete action with the weights above."""
    assign(_chooser._actor_network, *LOGITS.values())
    assign(_chooser._value_network, *VALUE.values())
    weights = iter(OF_ALL)
    for critic, target in _chooser._target_pairs:
        assign(critic, *next(weights).values())
        assign(target, *next(weights).values())
    return _chooser


def choices():
    actions = tf.constant(np.stack([CHOICES] * 2, axis=1), tf.int32)
    return frames()._replace(action=actions)


def of_choices(weights):
    return (NOW @ weights["kernel"] + weights["bias"])[range(4), CHOICES]


def advantages_of_choices(value=VALUE):
    return np.minimum(of_choices(OF_ALL[1]), of_choices(OF_ALL[3])) - v(value, NOW)


def value_loss_of_choices(value=VALUE):
    return expectile_loss(advantages_of_choices(value))


def actor_loss_of_choices(logits=LOGITS, value=VALUE):
    total = np.exp(NOW @ logits["kernel"] + logits["bias"]).sum(axis=1)
    weight = np.minimum(np.exp(BETA * advantages_of_choices(value)), MOST)
    return np.mean(-VALID * weight * (of_choices(logits) - np.log(total)))


def critic_loss_of_choices(first=OF_ALL[0], value=VALUE):
    target = SCALE * REWARDS + GAMMA * DISCOUNTS * v(value, LATER)
    errors = [VALID * (target - of_choices(w)) for w in (first, OF_ALL[2])]
    return np.mean(np.sum(np.square(errors), axis=0))


def test_losses_of_a_discrete_action(chooser):
    loss, extra = chooser.loss(choices())
    parts = [
        critic_loss_of_choices(),
        value_loss_of_choices(),
        actor_loss_of_choices(),
    ]
    np.testing.assert_allclose(extra[:3], parts, rtol=1e-5)
    np.testing.assert_allclose(loss, sum(parts), rtol=1e-5)
    found = chooser.diagnose(choices())
    recorded = of_choices(OF_ALL[0])[:3].mean()
    np.testing.assert_allclose(found["q_value"], recorded, rtol=1e-5)
    expected = advantages_of_choices()[:3].mean()
    np.testing.assert_allclose(found["advantage"], expected, rtol=1e-5)


def test_an_update_for_a_discrete_action(chooser):
    chooser.train(choices())
    value = moved(value_loss_of_choices, VALUE)
    logits = moved(lambda w: actor_loss_of_choices(w, value), LOGITS)
    first = moved(lambda w: critic_loss_of_choices(w, value), OF_ALL[0])
    for network, expected in (
        (chooser._value_network, value),
        (chooser._actor_network, logits),
        (chooser._critic_networks[0], first),
    ):
        for variable, weight in zip(network.variables, expected.values(), strict=True):
            np.testing.assert_allclose(variable, weight, rtol=1e-3, atol=1e-4)
    observation = tf.constant(NOW, tf.float32)
    greedy = chooser.policy.action(ts.restart(observation, batch_size=4)).action
    best = (NOW @ logits["kernel"] + logits["bias"]).argmax(axis=1)
    np.testing.assert_array_equal(greedy, best)


def test_a_critic_has_a_value_for_each_discrete_action():
    actor = networks.ActorDistributionNetwork(OBSERVATION, CHOICE)
    critic = networks.ValueNetwork(OBSERVATION)
    with pytest.raises(ValueError, match=r"inner dims \(3,\)"):
        make(CHOICE, critic_network=critic, actor_network=actor)


def test_losses_of_a_termination_a_truncation_and_a_boundary(agent):
    loss, extra = agent.loss(frames())
    parts = [critic_loss(), value_loss(), actor_loss()]
    np.testing.assert_allclose(extra[:3], parts, rtol=1e-5)
    np.testing.assert_allclose(loss, sum(parts), rtol=1e-5)
    errors = td_errors()
    np.testing.assert_allclose(extra.td_loss, (errors**2).sum(axis=0), rtol=1e-4)
    farthest = errors[np.abs(errors).argmax(axis=0), range(4)]
    np.testing.assert_allclose(extra.td_error, farthest, rtol=1e-4)
    # The clipping of the weights is at work on some examples, and not on others.
    assert 0 < np.sum(np.exp(BETA * advantages())[:3] > MOST) < 3


def test_an_update_moves_the_value_then_the_actor_then_the_critics(agent):
    agent.train(frames())
    value = moved(value_loss, VALUE)
    means = moved(lambda w: actor_loss(w, value), MEANS)
    first = moved(lambda w: critic_loss([w, CRITICS[1]], value), CRITICS[0])
    for network, expected in (
        (agent._value_network, value),
        (agent._actor_network, means),
        (agent._critic_networks[0], first),
    ):
        for variable, weight in zip(network.variables, expected.values(), strict=False):
            np.testing.assert_allclose(variable, weight, rtol=1e-3, atol=1e-4)
    target = agent._target_pairs[0][1]
    expected = 0.995 * TARGETS[0]["kernel"] + 0.005 * first["kernel"]
    np.testing.assert_allclose(target.variables[0], expected, rtol=1e-3, atol=1e-4)


def test_a_boundary_changes_no_weight(agent):
    row = tf.nest.map_structure(
        lambda t: t[3:],
        frames(np.full_like(OBSERVATIONS, 1e10), np.full(4, np.inf)),
    )
    before = [v.numpy() for v in agent.variables()[:-1]]
    pairs = agent._target_pairs
    for network, target in pairs:
        for one, other in zip(network.variables, target.variables, strict=True):
            variables.as_tf_variable(other).assign(one)
    before = [v.numpy() for n in agent._critic_networks for v in n.variables]
    assert agent.train(row).loss == 0
    after = [v.numpy() for n in agent._critic_networks for v in n.variables]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(
        agent._value_network.variables[0], VALUE["kernel"].astype("f")
    )
    np.testing.assert_array_equal(
        agent._actor_network.variables[0], MEANS["kernel"].astype("f")
    )


def test_weights_scale_the_examples(agent):
    weights = tf.constant([0.0, 2.0, 0.0, 5.0])
    only = tf.nest.map_structure(lambda t: t[1:2], frames())
    expected = 2 / 4 * agent.loss(only).loss
    np.testing.assert_allclose(agent.loss(frames(), weights).loss, expected, rtol=1e-5)


def test_a_squashed_actor_learns_from_actions_at_the_bounds():
    projection = functools.partial(
        networks.NormalProjectionNetwork, scale_distribution=True
    )
    agent = make(
        actor_network=networks.ActorDistributionNetwork(
            OBSERVATION,
            ACTION,
            fc_layer_params=None,
            continuous_projection_net=projection,
        )
    )
    agent.train(frames())
    assert np.isfinite(agent.loss(frames()).loss)


def test_diagnose(agent):
    values = agent.diagnose(frames())
    np.testing.assert_allclose(values["advantage"], advantages()[:3].mean(), rtol=1e-5)
    np.testing.assert_allclose(values["value_learning_rate"], 0.1, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"expectile": 1.0}, "expectile"),
        ({"max_weight": 0.0}, "max_weight"),
        (
            {"actor_network": networks.ActorNetwork(OBSERVATION, ACTION)},
            "actor_network",
        ),
        (
            {"value_network": networks.ValueRnnNetwork(OBSERVATION)},
            "recurrent",
        ),
        ({"action_spec": [CHOICE, ACTION]}, "action_spec: IQL expects one scalar"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises((ValueError, NotImplementedError), match=message):
        make(**arguments)
