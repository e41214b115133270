"""Acme's example networks, on the sizes for which it gives them.

Keras' layers replace Sonnet's, as `docs/networks.md` says.
"""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import policies
from tfrl.acme.tf import networks
from tfrl.acme.tf import utils as tf2_utils
from tfrl.specs import bounded_tensor_spec
from tfrl.trajectories import time_step as ts

FRAME = tf.TensorSpec([84, 84, 4], tf.uint8)
OBSERVATION = tf.TensorSpec([24], tf.float32)
ACTION = bounded_tensor_spec.BoundedTensorSpec([6], tf.float32, -1, 1)
OBSERVATIONS = tf.constant(
    np.random.default_rng(0).normal(size=[3, 24]).astype(np.float32)
)


def policy_layers():
    return [
        networks.LayerNormMLP((256, 256, 256), activate_final=True),
        networks.MultivariateNormalDiagHead(6),
    ]


@pytest.fixture(scope="module")
def greedy():
    layers = [*policy_layers(), networks.StochasticModeHead()]
    network = networks.Sequential(layers, OBSERVATION, seed=0)
    assert tf2_utils.create_variables(network, [OBSERVATION]) == tf.TensorSpec([6])
    return network


def distributional_critic():
    return networks.Sequential(
        [
            networks.CriticMultiplexer(),
            networks.LayerNormMLP((512, 512, 256), activate_final=True),
            networks.DiscreteValuedHead(vmin=-150.0, vmax=150.0, num_atoms=51),
        ],
        seed=1,
    )


def test_impala_network_gives_logits_value_and_state():
    network = networks.DeepRNN(
        [
            networks.AtariTorso(),
            keras.layers.LSTMCell(256),
            keras.layers.Dense(512),
            tf.nn.relu,
            networks.PolicyValueHead(num_actions=18),
        ],
        seed=0,
    )
    logits, value = tf2_utils.create_variables(network, [FRAME])
    assert logits == tf.TensorSpec([18], tf.float32)
    assert value == tf.TensorSpec([], tf.float32)
    frames = np.random.default_rng(0).integers(0, 256, [1, 2, 84, 84, 4], np.uint8)
    (logits, value), state = network(frames)
    assert logits.shape == [1, 2, 18]
    assert value.shape == [1, 2]
    first, carried = network(frames[:, 0])
    assert [s.shape for s in tf.nest.flatten(carried)] == [[1, 256], [1, 256]]
    second, last = network(frames[:, 1], network_state=carried)
    np.testing.assert_allclose(first[0], logits[:, 0], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(second[1], value[:, 1], rtol=1e-3, atol=1e-5)
    for one, other in zip(tf.nest.flatten(last), tf.nest.flatten(state), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


def test_stochastic_policy_starts_at_its_scale_near_zero():
    network = networks.Sequential(policy_layers(), seed=0)
    tf2_utils.create_variables(network, [OBSERVATION])
    distribution, _ = network(OBSERVATIONS)
    np.testing.assert_allclose(distribution.stddev(), 0.3, atol=0.02)
    np.testing.assert_allclose(distribution.mean(), 0, atol=0.1)
    assert distribution.log_prob(distribution.mode()).shape == [3]


def test_greedy_policy_takes_the_mean(greedy):
    stochastic = networks.Sequential(greedy.layers[:-1])
    np.testing.assert_array_equal(
        greedy(OBSERVATIONS)[0], stochastic(OBSERVATIONS)[0].mean()
    )


@pytest.mark.slow
def test_greedy_policy_acts_alike_when_saved(greedy, tmp_path):
    time_step = ts.restart(OBSERVATIONS, batch_size=3)
    policy = policies.ActorPolicy(ts.time_step_spec(OBSERVATION), ACTION, greedy)
    policies.PolicySaver(policy, batch_size=None).save(str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_allclose(
        loaded.action(time_step).action, greedy(OBSERVATIONS)[0], rtol=1e-5
    )


def test_distributional_critic_is_over_51_returns():
    critic = distributional_critic()
    tf2_utils.create_variables(critic, [OBSERVATION, ACTION])
    returns, _ = critic((OBSERVATIONS, tf.zeros([3, 6])))
    np.testing.assert_allclose(returns.values, np.arange(-150, 151, 6.0), atol=1e-4)
    assert returns.logits.shape == [3, 51]
    assert returns.mean().shape == [3]
    # One layer norm, and 30 inputs, 512, 512, 256 and 51 units.
    sizes = [30, 512, 512, 256, 51]
    dense = sum(a * b + b for a, b in itertools.pairwise(sizes))
    assert critic.count_params() == dense + 2 * 512


@pytest.mark.slow
def test_one_resnet_embeds_for_policy_and_critic():
    shared = networks.ResNetTorso()
    pixels = tf.zeros([2, 84, 84, 3], tf.uint8)
    embedding = shared(pixels)
    assert embedding.shape == [2, 256]
    policy = networks.Sequential([shared, *policy_layers()], seed=0)
    with tf.GradientTape() as tape:
        returns, _ = distributional_critic()((shared(pixels), policy(pixels)[0].mean()))
        mean = tf.reduce_sum(returns.mean())
    gradients = tape.gradient(mean, [v.value for v in shared.trainable_variables])
    assert len(gradients) == 32
    assert all(gradient is not None for gradient in gradients)
