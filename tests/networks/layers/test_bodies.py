"""The hidden layers of bodies, for a network and for an ensemble."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import networks
from tfrl.networks.layers import bodies
from tfrl.specs import BoundedTensorSpec

OBSERVATION = tf.TensorSpec([3], tf.float32)
ACTION = BoundedTensorSpec([1], tf.float32, -1, 1)
SPECS = OBSERVATION, ACTION
RNG = np.random.default_rng(0)
OBSERVED = RNG.normal(size=[5, 3]).astype(np.float32)
ACTED = RNG.uniform(-1, 1, [5, 1]).astype(np.float32)
INPUTS = np.concatenate([OBSERVED, ACTED], axis=1).astype(np.float64)


def normed(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)


def simba(x, variables):
    """Blocks x + W2 relu(W1 norm(x)), and the head, in float64."""
    weights = [np.asarray(v, np.float64) for v in variables]
    (first, bias), rest = weights[:2], weights[2:-2]
    x = x @ first + bias
    for w1, b1, w2, b2 in zip(*(rest[i::4] for i in range(4)), strict=True):
        x = x + np.maximum(normed(x) @ w1 + b1, 0) @ w2 + b2
    return (normed(x) @ weights[-2] + weights[-1])[..., 0]


def test_simba_is_a_stack_of_normalized_residual_blocks():
    critic = networks.CriticNetwork(
        SPECS, joint_fc_layer_params=(4, 4), body=bodies.simba, seed=1
    )
    values, _ = critic((OBSERVED, ACTED))
    expected = simba(INPUTS, critic.trainable_variables)
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-6)
    shapes = [tuple(v.shape) for v in critic.trainable_variables[:6]]
    assert shapes == [(4, 4), (4,), (4, 16), (16,), (16, 4), (4,)]


def test_each_critic_of_an_ensemble_has_its_own_blocks():
    ensemble = networks.CriticEnsembleNetwork(
        SPECS, 3, fc_layer_params=(4, 4), body=bodies.simba, seed=1
    )
    values, _ = ensemble((OBSERVED, ACTED))
    variables = ensemble.trainable_variables
    for i in range(3):
        own = [v[i, 0] if v.shape[1] == 1 else v[i] for v in variables]
        np.testing.assert_allclose(values[:, i], simba(INPUTS, own), rtol=1e-3)
    # Each has its own seeds.
    assert np.ptp(values, axis=1).min() > 0


def test_blocks_need_one_size():
    with pytest.raises(ValueError, match=r"sizes: got \(4, 8\), expected the same"):
        networks.ActorNetwork(*SPECS, (4, 8), body=bodies.simba)


def test_layer_normalization_follows_the_activation():
    critic = networks.CriticNetwork(
        SPECS, joint_fc_layer_params=(4,), body=bodies.layer_normed, seed=1
    )
    values, _ = critic((OBSERVED, ACTED))
    kernel, bias, scale, shift, last, last_bias = critic.trainable_variables
    hidden = np.maximum(INPUTS @ kernel + bias, 0)
    hidden -= hidden.mean(-1, keepdims=True)
    hidden /= np.sqrt(hidden.var(-1, keepdims=True) + 1e-5)
    expected = (hidden * scale + shift) @ last + last_bias
    np.testing.assert_allclose(values, expected[:, 0], rtol=1e-4, atol=1e-6)


def test_batch_renormalization_precedes_each_dense_layer_and_the_head():
    actor = networks.ActorDistributionNetwork(
        *SPECS, fc_layer_params=(4, 4), body=bodies.batch_renormed, seed=1
    )
    actor.create_variables()
    kinds = [type(layer).__name__ for layer in actor._encoder._dense_layers]
    assert kinds == ["BatchRenorm", *["Dense", "Activation", "BatchRenorm"] * 2]


@pytest.mark.parametrize("body", [bodies.simba, bodies.batch_renormed])
def test_copies_and_saved_weights_have_the_same_layers(body, tmp_path):
    network = networks.CriticEnsembleNetwork(SPECS, 2, fc_layer_params=(4,), body=body)
    network.create_variables()
    other = network.copy(name="other")
    other.create_variables()
    assert np.any(other((OBSERVED, ACTED))[0] != network((OBSERVED, ACTED))[0])
    path = tf.train.Checkpoint(network=network).write(str(tmp_path / "network"))
    tf.train.Checkpoint(network=other).read(path).assert_existing_objects_matched()
    np.testing.assert_array_equal(
        other((OBSERVED, ACTED))[0], network((OBSERVED, ACTED))[0]
    )


def test_a_residual_layer_adds_its_input():
    layer = bodies.Residual([keras.layers.Dense(2, kernel_initializer="ones")])
    np.testing.assert_array_equal(layer(tf.constant([[1.0, 2.0]])), [[4.0, 5.0]])
