import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import networks
from tfrl.networks.layers import initializers
from tfrl.specs import tensor_spec

SHAPE = (50, 200)


@pytest.mark.parametrize(
    ("initializer", "deviation"),
    [
        # The deviation of a normal number cut off at two is 0.8796 of it.
        (initializers.truncated(), 0.8796 / np.sqrt(50)),
        (initializers.uniform(), np.sqrt(0.333 / 200)),
        (initializers.near_zero(1e-4), 0.01 / np.sqrt(50)),
    ],
)
def test_standard_deviations(initializer, deviation):
    numbers = np.asarray(initializer(SHAPE))
    np.testing.assert_allclose(numbers.std(), deviation, rtol=0.03)
    np.testing.assert_allclose(numbers.mean(), 0, atol=0.05 * deviation)


@pytest.mark.parametrize(
    "initializer", ["glorot_uniform", keras.initializers.GlorotUniform(seed=3)]
)
def test_copies_draw_different_numbers(initializer):
    first, second = initializers.copies(initializer, 2)
    assert not np.array_equal(first([3, 3]), second([3, 3]))


def test_only_copies_of_seeded_initialisers_have_seeds():
    def seeds(initializer):
        copies = initializers.copies(initializer, 2)
        return [copy.get_config()["seed"] for copy in copies]

    assert seeds("glorot_uniform") == [None, None]
    seeded = keras.initializers.GlorotUniform(seed=3)
    assert seeds(seeded) == seeds(seeded)
    assert seeds(seeded) != seeds(keras.initializers.GlorotUniform(seed=4))


def test_weights_are_uniform_within_one_over_the_root_of_the_inputs():
    network = networks.QNetwork(
        tf.TensorSpec([4], tf.float32),
        tensor_spec.BoundedTensorSpec([], tf.int32, 0, 99),
        fc_layer_params=(400,),
    )
    network.create_variables()
    initializers.draw_by_fan_in(network, seed=1)
    hidden, _, last, bias = network.variables
    # A uniform number within 1 has a standard deviation of 1 / sqrt(3).
    for variable, fan_in in ((hidden, 4), (last, 400), (bias, 400)):
        bound = 1 / np.sqrt(fan_in)
        assert np.abs(variable).max() <= bound
        np.testing.assert_allclose(np.std(variable), bound / np.sqrt(3), rtol=0.15)
    before = bias.numpy()
    initializers.draw_by_fan_in(network, seed=1)
    np.testing.assert_array_equal(bias, before)
