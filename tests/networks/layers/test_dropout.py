import numpy as np
import tensorflow as tf

from tfrl.networks.layers import dropout

ONES = tf.ones([3, 100, 20])


def test_units_are_dropped_at_the_rate_and_the_others_scaled_in_training_alone():
    layer = dropout.Dropout(0.25, seed=1)
    np.testing.assert_array_equal(layer(ONES), ONES)
    first, second = (layer(ONES, training=True).numpy() for _ in range(2))
    np.testing.assert_allclose(np.unique(first), [0, 1 / 0.75], rtol=1e-6)
    np.testing.assert_allclose(np.mean(first == 0), 0.25, atol=0.02)
    # Each call, example and unit has its own.
    assert np.any(first != second)
    assert np.any(first[0] != first[1])


def test_compiled_graphs_drop_the_same_units():
    plain, compiled = (dropout.Dropout(0.5, seed=1) for _ in range(2))
    plain(ONES), compiled(ONES)
    call = tf.function(lambda x: compiled(x, training=True), jit_compile=True)
    np.testing.assert_array_equal(plain(ONES, training=True), call(ONES))
