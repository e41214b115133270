"""SAC's and TD3's critics with bins: their losses, and the agents that refuse them."""

import numpy as np
import pytest
import tensorflow as tf

from tests.losses import test_hl_gauss
from tfrl import agents, losses, networks
from tfrl.agents.sac import tanh_normal_projection_network
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

LOSS = losses.HlGauss(-2.0, 3.0, 10)
SPEC = tf.TensorSpec([3], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([2], tf.float32, -1, 1)
NUM_CRITICS = {agents.SacAgent: 4, agents.Td3Agent: 2}


def make_agent(kind, loss=LOSS, num_bins=10, **arguments):
    critic = networks.CriticEnsembleNetwork(
        (SPEC, ACTION),
        NUM_CRITICS.get(kind, 2),
        num_bins,
        (5,),
        seed=0,
        last_kernel_initializer="glorot_uniform",
    )
    if issubclass(kind, agents.Td3Agent):
        actor = networks.ActorNetwork(SPEC, ACTION, (5,), seed=1)
        optimizers = None, None
    else:
        actor = networks.ActorDistributionNetwork(
            SPEC,
            ACTION,
            fc_layer_params=(5,),
            seed=1,
            continuous_projection_net=(
                tanh_normal_projection_network.TanhNormalProjectionNetwork
            ),
        )
        optimizers = None, None, None
    return kind(
        ts.time_step_spec(SPEC),
        ACTION,
        actor_network=actor,
        critic_network=critic,
        **dict(
            zip(
                ("actor_optimizer", "critic_optimizer", "alpha_optimizer"),
                optimizers,
                strict=False,
            )
        ),
        td_errors_loss_fn=loss,
        seed=0,
        **arguments,
    )


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [(agents.SacAgent, {"num_min": 2, "critic_loss_weight": 1}), (agents.Td3Agent, {})],
)
def test_the_critics_loss_is_the_sum_of_their_cross_entropies(kind, arguments):
    agent = make_agent(kind, **arguments)
    random = np.random.default_rng(0)
    observation = random.normal(size=(6, 2, 3)).astype(np.float32)
    action = random.uniform(-1, 1, size=(6, 2, 2)).astype(np.float32)
    middle = tf.ones([6, 2], tf.int32)
    experience = trajectory.Trajectory(
        step_type=middle,
        observation=tf.constant(observation),
        action=tf.constant(action),
        policy_info=(),
        next_step_type=middle,
        reward=tf.constant(random.normal(size=(6, 2)), tf.float32),
        discount=tf.ones([6, 2]),
    )
    found = agent.loss(experience).extra
    logits, _ = agent._critic_networks[0]((observation[:, 0], action[:, 0]))
    logits = logits.numpy().astype(np.float64)
    log_probs = logits - np.log(np.sum(np.exp(logits), axis=-1, keepdims=True))
    values = np.sum(np.exp(log_probs) * np.linspace(-1.75, 2.75, 10), axis=-1)
    # The target, by the error of the critic with the largest one.
    candidates = found.td_error.numpy()[:, np.newaxis] + values
    errors = candidates[:, :, np.newaxis] - values[:, np.newaxis]
    largest = np.take_along_axis(
        errors, np.argmax(np.abs(errors), axis=-1)[..., np.newaxis], axis=-1
    )[..., 0]
    chosen = np.argmin(np.abs(largest - found.td_error.numpy()[:, np.newaxis]), axis=1)
    target = np.take_along_axis(candidates, chosen[:, np.newaxis], axis=1)
    masses = test_hl_gauss.masses(target, LOSS)
    expected = -np.sum(masses * log_probs, axis=(1, 2))
    np.testing.assert_allclose(found.td_loss, expected, rtol=1e-5)
    np.testing.assert_allclose(found.critic_loss, expected.mean(), rtol=1e-5)
    logged = agent._q_values(
        ts.restart(tf.constant(observation[:, 0]), 6), tf.constant(action[:, 0])
    )
    first = values[:, 0] if kind is agents.Td3Agent else values.mean(axis=1)
    np.testing.assert_allclose(logged, first, rtol=1e-5)


@pytest.mark.parametrize(
    "kind", [agents.CrossQAgent, agents.EdacAgent, agents.Td3BcAgent]
)
def test_other_agents_refuse_bins_by_their_name(kind):
    with pytest.raises(ValueError, match=f"the critics of a {kind.__name__} predict"):
        make_agent(kind)


def test_outputs_that_are_not_the_logits_of_the_bins_are_refused():
    with pytest.raises(ValueError, match=r"shape \[B, N, 10\].*num_quantiles=10"):
        make_agent(agents.SacAgent, num_bins=7)
    with pytest.raises(ValueError, match=r"shape \[B, N, 10\]"):
        make_agent(agents.Td3Agent, num_bins=None)
