"""TQC's loss against the paper's equations in NumPy."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents
from tfrl.agents import transitions, updates
from tfrl.networks import (
    ActorDistributionNetwork,
    ActorDistributionRnnNetwork,
    CriticEnsembleNetwork,
)
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import variables

OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([1], tf.float32, -1.0, 1.0)
TANH_NORMAL = functools.partial(
    agents.sac.TanhNormalProjectionNetwork,
    std_transform=agents.sac.std_clip_transform,
)


def make(num_quantiles=3, kind=ActorDistributionNetwork, **kwargs):
    is_recurrent = kind is ActorDistributionRnnNetwork
    layers = {"lstm_size": (3,)} if is_recurrent else {"fc_layer_params": ()}
    actor = kind(
        OBSERVATION, ACTION, continuous_projection_net=TANH_NORMAL, seed=1, **layers
    )
    critic = CriticEnsembleNetwork(
        (OBSERVATION, ACTION), 2, num_quantiles, fc_layer_params=(), seed=1
    )
    return agents.TqcAgent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        critic,
        actor,
        *(keras.optimizers.SGD(0.1) for _ in range(3)),
        **{"gamma": 0.5, "initial_log_alpha": -30.0, "seed": 1, **kwargs},
    )


def with_quantiles(agent, online, target):
    """Makes both networks constant: the quantiles of the two critics."""
    ((network, target_network),) = agent._target_pairs
    for net, values in ((network, online), (target_network, target)):
        kernel, bias = map(variables.as_tf_variable, net.variables)
        kernel.assign(tf.zeros_like(kernel))
        bias.assign(np.reshape(values, bias.shape))
    return agent


# A transition, a termination, a truncation and a boundary.
FRAMES = trajectory.Trajectory(
    step_type=tf.constant([[1, 1], [1, 2], [1, 2], [2, 0]]),
    observation=tf.ones([4, 2, 2]),
    action=tf.zeros([4, 2, 1]),
    policy_info=(),
    next_step_type=tf.constant([[1, 1], [2, 0], [2, 0], [0, 1]]),
    reward=tf.constant([[1.0, 9], [-2, 9], [3, 9], [100, 9]]),
    discount=tf.constant([[1.0, 1], [0, 1], [1, 1], [1, 1]]),
)


def test_loss_has_the_lowest_quantiles_of_both_critics():
    """Of 1, 2, 9 and 3, 4, 5, the four lowest are 1, 2, 3 and 4."""
    online = np.array([[0.0, 1.0, 5.0], [2.0, 2.5, 3.0]])
    agent = with_quantiles(
        make(num_dropped_quantiles=1), online, [[1, 2, 9], [3, 4, 5]]
    )
    _, extra = agent.loss(FRAMES)
    levels = np.array([1, 3, 5]) / 6
    losses, errors = [], []
    kept = np.array([1, 2, 3, 4])
    for target in (1 + 0.5 * kept, np.full(4, -2.0), 3 + 0.5 * kept):
        u = target - online[..., np.newaxis]
        huber = np.where(abs(u) <= 1, u**2 / 2, abs(u) - 0.5)
        rho = abs(levels[:, np.newaxis] - (u < 0)) * huber
        losses.append(rho.mean(axis=(1, 2)).sum())
        errors.append(max(target.mean() - online.mean(axis=1), key=abs))
    np.testing.assert_allclose(extra.td_loss, [*losses, 0], rtol=1e-6)
    np.testing.assert_allclose(extra.td_error, [*errors, 0], rtol=1e-6)
    np.testing.assert_allclose(extra.critic_loss, 0.5 * sum(losses) / 4, rtol=1e-6)
    # The actor maximises the mean of all quantiles.
    np.testing.assert_allclose(extra.actor_loss, -online.mean() * 3 / 4, rtol=1e-6)


def test_entropy_raises_each_sample_of_the_target():
    with_entropy = make(initial_log_alpha=np.log(0.3))
    agent = with_quantiles(with_entropy, np.zeros([2, 3]), np.ones([2, 3]))
    time_step = ts.TimeStep(
        tf.ones([4], tf.int32), tf.zeros([4]), tf.ones([4]), tf.ones([4, 2])
    )
    seed = tf.constant([1, 2])
    _, log_prob = agent._draw(time_step, seed, training=False)
    ones = tf.ones([4])
    data = transitions.Transitions(
        time_step, tf.zeros([4, 1]), time_step, 0 * ones, ones, ones > 0
    )
    values = agent._targets(updates.Batch(data, None, False, seed))
    assert values.shape == (4, 2)
    np.testing.assert_allclose(
        values, np.tile(1 - 0.3 * log_prob.numpy()[:, np.newaxis], [1, 2]), rtol=1e-6
    )


def test_wrong_arguments():
    with pytest.raises(ValueError, match="num_dropped_quantiles: expected less than 3"):
        make(num_dropped_quantiles=3)
    with pytest.raises(ValueError, match="num_min: expected None"):
        make(num_min=2)
    with pytest.raises(ValueError, match=r"shape \[B, N, M\]"):
        make(num_quantiles=None)
    with pytest.raises(NotImplementedError, match="recurrent"):
        make(kind=ActorDistributionRnnNetwork)
