"""TF-Agents' helpers, by hand."""

import numpy as np
import tensorflow as tf

from tests.bandits import bandit_data as data
from tfrl.bandits.agents import utils


def test_sums_of_weighted_contexts():
    found = utils.sum_reward_weighted_observations(
        tf.constant([[2.0], [3.0]]), tf.constant([[1.0, 0.0], [1.0, 2.0]])
    )
    np.testing.assert_array_equal(found, [5, 6])


def test_laplacian_of_nearest_neighbours():
    x = tf.constant([[0.0], [1.0], [3.0], [10.0]])
    np.testing.assert_array_equal(
        utils.compute_pairwise_distances(x)[0], [0, 1, 9, 100]
    )
    expected = [[1, -1, 0, 0], [-1, 2, -1, 0], [0, -1, 2, -1], [0, 0, -1, 1]]
    found = utils.build_laplacian_nearest_neighbor_graph(x)
    np.testing.assert_array_equal(found, expected)
    in_line = utils.build_laplacian_over_ordinal_integer_actions(data.action_spec(4))
    np.testing.assert_array_equal(in_line, expected)
