"""EdacAgent: the similarity of its critics' gradients, and rare actions."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents, losses, networks, testing
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.utils import tensor_normalizer

OBSERVATION = tf.TensorSpec([1], tf.float32)
# Half of the ranges: 1 and 4.
ACTION = BoundedTensorSpec([2], tf.float32, [-1, -2], [1, 6])
WEIGHTS = np.array([[1.0, 2.0, -1.0], [0.5, -1.0, 1.0], [0.0, 3.0, 2.0]])
TANH_NORMAL = functools.partial(
    agents.sac.TanhNormalProjectionNetwork,
    std_transform=agents.sac.std_clip_transform,
)


def make(action_spec=ACTION, num_critics=3, layers=(), rate=1e-2, **settings):
    specs = (OBSERVATION, action_spec)
    agent = agents.EdacAgent(
        ts.time_step_spec(OBSERVATION),
        action_spec,
        networks.CriticEnsembleNetwork(
            specs, num_critics, fc_layer_params=layers, seed=2
        ),
        networks.ActorDistributionNetwork(
            *specs,
            fc_layer_params=layers,
            continuous_projection_net=TANH_NORMAL,
            seed=1,
        ),
        *(keras.optimizers.Adam(rate) for _ in range(3)),
        **{"gamma": 0.9, "seed": 0, **settings},
    )
    agent.initialize()
    return agent


def transitions(action, reward):
    """Single steps; the last one is a boundary."""
    number = len(action)
    zeros, observed = tf.zeros([number]), tf.ones([number, 1])
    types = tf.constant([0] * (number - 1) + [2])
    first = ts.TimeStep(types, zeros, zeros, observed)
    last = ts.TimeStep(tf.ones([number], tf.int32), reward, zeros, observed)
    return trajectory.Transition(first, policy_step.PolicyStep(action), last)


@pytest.mark.parametrize("normalized", [False, True])
def test_the_similarity_of_linear_critics_worked_by_hand(normalized):
    batch = transitions(tf.constant([[0.5, 2.0], [0, 1], [9, 9]]), tf.ones([3]))
    normalizer = tensor_normalizer.StreamingTensorNormalizer(OBSERVATION)
    chosen = {"observation_normalizer": normalizer} if normalized else {}
    critic_losses = []
    for eta in (0.0, 0.7):
        agent = make(eta=eta, **chosen)
        agent._critic_networks[0].trainable_variables[0].assign(WEIGHTS[..., None])
        critic_losses.append(float(agent.loss(batch).extra.critic_loss))
    # The gradients are the same for all examples, two of three of which count.
    directions = WEIGHTS[:, 1:] * [1, 4]
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    products = directions @ directions.T
    similarity = (products.sum() - np.trace(products)) / 2 * 2 / 3
    expected = critic_losses[0] + 0.5 * 0.7 * similarity
    np.testing.assert_allclose(critic_losses[1], expected, rtol=1e-4)


def test_updates_make_the_gradients_less_alike():
    batch = transitions(tf.constant([[0.5, 2.0], [0, 1], [9, 9]]), tf.ones([3]))
    found = []
    for eta in (0.0, 5.0):
        agent = make(eta=eta, layers=(8,), rate=3e-3)
        train = tf.function(agent.train, autograph=False)
        for _ in range(60):
            train(batch)
        own = agent._batch(batch, None, False)
        found.append(float(losses.gradient_similarity(agent._gradients(own))[0]))
    assert found[1] < found[0] - 0.5


def test_it_prefers_good_actions_that_were_recorded():
    """The reward is the action, of which recordings have -0.5 to 0.5."""
    action_spec = BoundedTensorSpec([1], tf.float32, -1, 1)
    agent = make(action_spec, 5, (16,), 3e-3, greedy_eval=True, initial_log_alpha=-4.0)
    train = tf.function(agent.train, autograph=False)
    rng = np.random.default_rng(0)
    for _ in range(300):
        action = tf.constant(rng.uniform(-0.5, 0.5, [64, 1]), tf.float32)
        train(transitions(action, action[:, 0]))
    step = ts.restart(tf.ones([1, 1]), batch_size=1)
    assert float(agent.policy.action(step).action[0, 0]) > 0.35


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"eta: .*-1"):
        make(eta=-1.0)
    with pytest.raises(ValueError, match="expected one network of several critics"):
        make(num_critics=1)


def test_a_recurrent_actor_needs_eta_0():
    specs = (OBSERVATION, ACTION)

    def make_recurrent(eta):
        return agents.EdacAgent(
            ts.time_step_spec(OBSERVATION),
            ACTION,
            networks.CriticEnsembleNetwork(specs, 2, fc_layer_params=()),
            networks.ActorDistributionRnnNetwork(
                *specs, lstm_size=(2,), continuous_projection_net=TANH_NORMAL
            ),
            *(keras.optimizers.Adam(1e-3) for _ in range(3)),
            eta=eta,
        )

    with pytest.raises(NotImplementedError, match="EDAC expects one without a state"):
        make_recurrent(1.0)
    agent = make_recurrent(0.0)
    experience = testing.AgentConformance().make_experience(agent, 4, 0)
    assert np.isfinite(agent.train(experience).loss)
