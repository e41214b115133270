import keras
import numpy as np
import pytest

from tfrl.keras_layers import StackedDense

X = np.random.default_rng(0).normal(size=[3, 4, 5]).astype(np.float32)
INITIALIZERS = [keras.initializers.GlorotUniform(seed=i) for i in range(3)]


def test_each_layer_is_a_dense_layer():
    layer = StackedDense(3, 2, "tanh", INITIALIZERS)
    outputs = layer(X)
    kernel, bias = (v.numpy() for v in layer.variables)
    np.testing.assert_allclose(
        outputs,
        np.tanh(np.einsum("kbi,kio->kbo", X, kernel) + bias),
        rtol=1e-5,
        atol=1e-6,
    )
    shared = layer(X[0])
    np.testing.assert_allclose(shared[0], outputs[0], rtol=1e-5, atol=1e-6)
    assert shared.shape == layer.compute_output_shape(X[0].shape) == (3, 4, 2)


def test_configuration_makes_the_same_layer():
    layer = StackedDense(3, 2, "relu", INITIALIZERS)
    copy = StackedDense.from_config(layer.get_config())
    np.testing.assert_array_equal(layer(X), copy(X))


def test_there_must_be_an_initialiser_for_each_layer():
    with pytest.raises(ValueError, match="kernel_initializers: got 1, expected 3"):
        StackedDense(3, 2, kernel_initializers=["zeros"])
