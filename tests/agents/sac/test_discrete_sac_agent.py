"""Discrete SAC's losses and gradients against the same equations in NumPy's doubles."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents
from tfrl.networks import ActorDistributionNetwork, QNetwork
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import variables

FIRST, MID, LAST = 0, 1, 2
OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
RNG = np.random.default_rng(0)
GAMMA, ALPHA = 0.9, 0.4
ACTOR, *CRITICS = ((RNG.normal(size=[2, 3]), RNG.normal(size=[3])) for _ in range(5))
CRITICS, TARGETS = CRITICS[:2], CRITICS[2:]

# A transition, a termination, a truncation and a boundary.
FRAMES = trajectory.Trajectory(
    step_type=tf.constant([[MID, MID], [MID, LAST], [FIRST, LAST], [LAST, FIRST]]),
    observation=tf.constant(RNG.normal(size=[4, 2, 2]), tf.float32),
    action=tf.constant([[0, 1], [2, 0], [1, 2], [1, 1]]),
    policy_info=(),
    next_step_type=tf.constant(
        [[MID, MID], [LAST, FIRST], [LAST, FIRST], [FIRST, MID]]
    ),
    reward=tf.constant([[1.0, 9], [-2, 9], [0.5, 9], [100, 9]]),
    discount=tf.constant([[1.0, 1], [0, 1], [1, 1], [1, 1]]),
)
VALID = np.array([1, 1, 1, 0])
ALL = np.ones([4, 2, 3], np.int32)
# The legal actions of each frame.
SOME = np.array(
    [
        [[1, 1, 0], [0, 1, 1]],
        [[0, 0, 1], [1, 1, 1]],
        [[1, 1, 1], [0, 1, 0]],
        [[1, 1, 0], [1, 0, 0]],
    ]
)
MASKED = {"seen": OBSERVATION, "mask": tf.TensorSpec([3], tf.int32)}
SPLITTER = {
    "observation_and_action_constraint_splitter": lambda x: (x["seen"], x["mask"])
}


def make(action_spec=ACTION, observation_spec=OBSERVATION, **kwargs):
    defaults = {
        "critic_network": QNetwork(OBSERVATION, ACTION, fc_layer_params=(), seed=1),
        "actor_network": ActorDistributionNetwork(
            OBSERVATION, ACTION, fc_layer_params=(), seed=2
        ),
        "gamma": GAMMA,
        "initial_log_alpha": float(np.log(ALPHA)),
        "seed": 3,
    }
    optimizers = {
        f"{part}_optimizer": keras.optimizers.SGD(0.1)
        for part in ("actor", "critic", "alpha")
    }
    return agents.DiscreteSacAgent(
        ts.time_step_spec(observation_spec),
        action_spec,
        **{**defaults, **optimizers, **kwargs},
    )


def worked(**kwargs):
    agent = make(**kwargs)
    pairs = zip(agent._target_pairs, CRITICS, TARGETS, strict=True)
    weights = [(agent._actor_network, ACTOR)]
    for (network, target), own, other in pairs:
        weights += [(network, own), (target, other)]
    for network, values in weights:
        for variable, value in zip(network.variables, values, strict=True):
            variables.as_tf_variable(variable).assign(value)
    return agent


def linear(weights, observation):
    return observation.astype(np.float64) @ weights[0] + weights[1]


def log_probs(observation, actor=ACTOR, legal=1):
    logits = np.where(legal, linear(actor, observation), -1e9)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def actor_loss(actor=ACTOR, critics=CRITICS, legal=1):
    now = FRAMES.observation.numpy()[:, 0]
    log_pi = log_probs(now, actor, legal)
    smallest = np.minimum(*(linear(w, now) for w in critics))
    return np.mean(VALID * (np.exp(log_pi) * (ALPHA * log_pi - smallest)).sum(-1))


@pytest.mark.parametrize("legal", [ALL, SOME])
def test_losses_of_a_termination_a_truncation_and_a_boundary(legal):
    now, later = np.moveaxis(FRAMES.observation.numpy(), 1, 0)
    log_pi = log_probs(later, legal=legal[:, 1])
    smallest = np.minimum(*(linear(w, later) for w in TARGETS))
    soft = (np.exp(log_pi) * (smallest - ALPHA * log_pi)).sum(axis=-1)
    reward, discount = FRAMES.reward.numpy()[:, 0], FRAMES.discount.numpy()[:, 0]
    target = reward + GAMMA * discount * soft
    taken = np.arange(4), FRAMES.action.numpy()[:, 0]
    errors = VALID * [target - linear(w, now)[taken] for w in CRITICS]
    log_pi = log_probs(now, legal=legal[:, 0])
    entropy = -(np.exp(log_pi) * log_pi).sum(axis=-1)
    missing = entropy - 0.98 * np.log(legal[:, 0].sum(axis=-1))
    expected = [
        0.5 * np.mean((errors**2).sum(axis=0)),
        actor_loss(legal=legal[:, 0]),
        np.mean(VALID * np.log(ALPHA) * missing),
    ]
    agent, frames = worked(), FRAMES
    if legal is SOME:
        agent = worked(observation_spec=MASKED, **SPLITTER)
        both = {"seen": FRAMES.observation, "mask": tf.constant(legal, tf.int32)}
        frames = FRAMES._replace(observation=both)
    loss, extra = agent.loss(frames)
    np.testing.assert_allclose(extra[:3], expected, rtol=1e-5)
    np.testing.assert_allclose(loss, sum(expected), rtol=1e-5)
    np.testing.assert_allclose(extra.td_loss, (errors**2).sum(axis=0), rtol=1e-5)
    largest = np.where(np.argmax(abs(errors), axis=0), *errors[::-1])
    np.testing.assert_allclose(extra.td_error, largest, rtol=1e-5)


def test_gradient_of_the_actor_is_the_slope_of_its_loss():
    agent = worked()
    agent.train(FRAMES)
    critics = [[v.numpy() for v in c.variables] for c in agent._critic_networks]
    for i, variable in enumerate(agent._actor_network.variables):
        for index in np.ndindex(*variable.shape):
            sides = []
            for step in (1e-5, -1e-5):
                moved = [w.copy() for w in ACTOR]
                moved[i][index] += step
                sides.append(actor_loss(moved, critics))
            slope = (sides[0] - sides[1]) / 2e-5
            np.testing.assert_allclose(
                variable.numpy()[index],
                ACTOR[i][index] - 0.1 * slope,
                rtol=1e-4,
                atol=1e-6,
            )


def test_policy_is_greedy_if_asked():
    time_step = ts.restart(tf.zeros([200, 2]), 200)
    greedy = make(greedy_eval=True).policy.action(time_step, seed=1).action.numpy()
    assert len(np.unique(greedy)) == 1
    sampled = make().policy.action(time_step, seed=1).action.numpy()
    assert len(np.unique(sampled)) == 3


def test_actions_are_legal_where_others_are_masked():
    agent = make(observation_spec=MASKED, **SPLITTER)
    masks = tf.constant(np.tile(SOME[:, 1], [50, 1]))
    seen = {"seen": tf.zeros([200, 2]), "mask": tf.cast(masks, tf.int32)}
    for policy in (agent.policy, agent.collect_policy):
        action = policy.action(ts.restart(seen, 200), seed=1).action.numpy()
        assert masks.numpy()[np.arange(200), action].all()
        assert len(np.unique(action)) == 3


def test_masks_without_a_legal_action_after_episodes_do_not_count():
    legal = SOME.copy()
    legal[1, 1] = legal[3, 0] = 0  # Where an episode has ended.
    found = []
    for mask in (SOME, legal):
        agent = worked(observation_spec=MASKED, **SPLITTER)
        both = {"seen": FRAMES.observation, "mask": tf.constant(mask, tf.int32)}
        agent.train(FRAMES._replace(observation=both))
        found.append([x.numpy() for x in agent.variables()])
    for before, after in zip(*found, strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-6)


def test_a_single_action_needs_no_entropy():
    one = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 0)
    agent = make(
        one,
        {"seen": OBSERVATION, "mask": tf.TensorSpec([1], tf.int32)},
        critic_network=QNetwork(OBSERVATION, one, seed=1),
        actor_network=ActorDistributionNetwork(OBSERVATION, one, seed=2),
        **SPLITTER,
    )
    both = {"seen": FRAMES.observation, "mask": tf.ones([4, 2, 1], tf.int32)}
    frames = FRAMES._replace(observation=both, action=tf.zeros_like(FRAMES.action))
    assert agent.loss(frames).extra.alpha_loss == 0.0


def test_wrong_actions_and_networks():
    floats = tensor_spec.BoundedTensorSpec([1], tf.float32, -1, 1)
    with pytest.raises(ValueError, match=r"action_spec: discrete SAC .*SacAgent"):
        make(floats)
    shifted = tensor_spec.BoundedTensorSpec([], tf.int32, 1, 3)
    with pytest.raises(ValueError, match="ActionOffsetWrapper"):
        make(shifted)
    with pytest.raises(ValueError, match="SAC expects distributions"):
        make(actor_network=QNetwork(OBSERVATION, ACTION))
    more = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 3)
    with pytest.raises(ValueError, match="inner dims"):
        make(critic_network=QNetwork(OBSERVATION, more))
