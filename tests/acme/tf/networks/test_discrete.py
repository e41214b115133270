import numpy as np
import pytest
import tensorflow as tf

from tfrl.acme.tf.networks import discrete


def test_unlikely_actions_get_the_smallest_value():
    # Ratios to the likeliest action's probability: 1, 0.5 and 0.25.
    network = discrete.DiscreteFilteredQNetwork(
        g_network=lambda o: tf.math.log([[0.4, 0.2, 0.1]]) + 0 * o,
        q_network=lambda o: o,
        threshold=0.3,
    )
    np.testing.assert_array_equal(network(tf.constant([[5.0, 3.0, 7.0]])), [[5, 3, 3]])


def test_threshold_is_a_ratio():
    with pytest.raises(ValueError, match=r"threshold: .* got 1\.5"):
        discrete.DiscreteFilteredQNetwork(tf.identity, tf.identity, 1.5)
