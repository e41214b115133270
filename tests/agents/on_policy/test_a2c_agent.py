"""A2C's loss against NumPy, and its kinship with PPO."""

import keras
import numpy as np
import tensorflow as tf

from tests.agents.on_policy.rollouts import LAST, collect
from tfrl import agents, networks
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([2], tf.float32)
CHOICE = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
ROWS = ["fmTbfm", "mmmmmm"]


def make(kind=agents.A2CAgent, **kwargs):
    return kind(
        ts.time_step_spec(OBSERVATION),
        CHOICE,
        keras.optimizers.SGD(0.1),
        networks.ActorDistributionNetwork(
            OBSERVATION, CHOICE, fc_layer_params=(4,), seed=1
        ),
        networks.ValueNetwork(OBSERVATION, fc_layer_params=(4,), seed=2),
        **kwargs,
    )


def test_the_loss_is_that_of_numpy():
    agent = make(compute_value_and_advantage_in_train=False, discount_factor=0.9)
    frames, _ = collect(agent, *ROWS)
    data = agent.preprocess_sequence(frames)
    values = agent.collect_policy.apply_value_network(
        frames.observation, frames.step_type
    )[0].numpy()
    rewards = frames.reward.numpy()
    # The discounted rewards up to the truncation, or to the end of the data.
    returns = np.zeros([2, 5])
    returns[1] = [
        sum(0.9**i * rewards[1, t + i] for i in range(5 - t))
        + 0.9 ** (5 - t) * values[1, 5]
        for t in range(5)
    ]
    returns[0, 2] = rewards[0, 2] + 0.9 * values[0, 3]
    for t in (1, 0):
        returns[0, t] = rewards[0, t] + 0.9 * returns[0, t + 1]
    returns[0, 4] = rewards[0, 4] + 0.9 * values[0, 5]
    valid = np.array(data.step_type != LAST)
    log_probs = agent.actor_net(data.observation)[0].log_prob(data.action).numpy()
    advantages = returns - values[:, :-1]
    info = agent.loss(data).extra
    np.testing.assert_allclose(
        info.policy_gradient_loss, -(log_probs * advantages * valid).mean(), rtol=1e-4
    )
    np.testing.assert_allclose(
        info.value_estimation_loss, 0.5 * (advantages**2 * valid).mean(), rtol=1e-4
    )


def test_it_is_the_first_update_of_ppo():
    settings = {"gradient_clipping": 0.5, "entropy_regularization": 0.01}
    agent = make(**settings)
    ppo = make(
        agents.PPOClipAgent,
        **settings,
        importance_ratio_clipping=0.2,
        num_epochs=1,
        normalize_observations=False,
        normalize_rewards=False,
        normalize_advantages=False,
    )
    frames, _ = collect(agent, *ROWS)
    agent.train(frames)
    ppo.train(frames)
    for a, b in zip(agent.variables(), ppo.variables(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)
