import numpy as np
import pytest
import tensorflow as tf

from tests import processors
from tfrl.networks import CriticEnsembleNetwork, CriticNetwork
from tfrl.specs import tensor_spec

OBSERVATION = tf.TensorSpec([3], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([2], tf.float32, -1, 1)
SPECS = (OBSERVATION, ACTION)
RNG = np.random.default_rng(0)
INPUTS = (
    RNG.normal(size=[4, 3]).astype(np.float32),
    RNG.normal(size=[4, 2]).astype(np.float32),
)


def test_each_critic_is_a_network_of_its_own():
    """Each row of the ensemble is a CriticNetwork with that row's weights."""
    ensemble = CriticEnsembleNetwork(SPECS, 3, fc_layer_params=(5, 4), seed=1)
    values, _ = ensemble(INPUTS)
    assert values.shape == (4, 3)
    alone = CriticNetwork(SPECS, joint_fc_layer_params=(5, 4))
    alone.create_variables()
    for i in range(3):
        for own, stacked in zip(alone.variables, ensemble.variables, strict=True):
            own.assign(tf.reshape(stacked[i], own.shape))
        np.testing.assert_allclose(values[:, i], alone(INPUTS)[0], rtol=1e-5, atol=1e-7)


def test_initial_weights_differ_and_depend_on_the_fan_in_of_one_critic():
    ensemble = CriticEnsembleNetwork(SPECS, 4, fc_layer_params=(300,), seed=1)
    ensemble.create_variables()
    kernel = ensemble.variables[0].numpy()
    assert kernel.shape == (4, 5, 300)
    assert len(np.unique(kernel[:, 0, 0])) == 4
    np.testing.assert_allclose(np.abs(kernel).max(axis=(1, 2)), 5**-0.5, rtol=0.01)
    same = CriticEnsembleNetwork(SPECS, 4, fc_layer_params=(300,), seed=1)
    same.create_variables()
    np.testing.assert_array_equal(same.variables[0], kernel)


def test_quantiles_and_sequences():
    ensemble = CriticEnsembleNetwork(SPECS, 3, 7, fc_layer_params=(5,), seed=1)
    values, _ = ensemble(INPUTS)
    assert values.shape == (4, 3, 7)
    sequences = tf.nest.map_structure(lambda x: tf.reshape(x, [2, 2, -1]), INPUTS)
    unrolled, _ = ensemble(sequences)
    np.testing.assert_allclose(
        tf.reshape(unrolled, values.shape), values, rtol=1e-5, atol=1e-7
    )


def test_layer_norm_and_dropout():
    ensemble = CriticEnsembleNetwork(
        SPECS, 2, fc_layer_params=(6,), layer_norm=True, dropout=0.5, seed=1
    )
    values, _ = ensemble(INPUTS)
    kernel, bias, last, last_bias = (v.numpy() for v in ensemble.trainable_variables)
    hidden = np.concatenate(INPUTS, axis=-1) @ kernel + bias
    hidden -= hidden.mean(axis=-1, keepdims=True)
    hidden /= np.sqrt(hidden.var(axis=-1, keepdims=True) + 1e-3)
    expected = (np.maximum(hidden, 0) @ last + last_bias)[..., 0].T
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-6)
    assert np.any(ensemble(INPUTS, training=True)[0] != values)


@processors.multiplies_in_half_precision
def test_values_are_float32_under_mixed_precision():
    ensemble = CriticEnsembleNetwork(SPECS, 2, dtype="mixed_bfloat16", seed=1)
    values, _ = ensemble(INPUTS)
    assert values.dtype == tf.float32


def test_numbers_must_be_positive():
    with pytest.raises(ValueError, match=r"num_critics: .* got 0"):
        CriticEnsembleNetwork(SPECS, 0)
    with pytest.raises(ValueError, match=r"num_quantiles: .* got 0"):
        CriticEnsembleNetwork(SPECS, 2, 0)
