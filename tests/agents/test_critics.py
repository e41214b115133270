"""What agents do with critics, against NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents import critics, transitions, updates
from tfrl.networks import CriticEnsembleNetwork
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = BoundedTensorSpec([1], tf.float32, -1, 1)


def steps(*shape):
    rng = np.random.default_rng(0)
    return ts.TimeStep(
        tf.ones(shape, tf.int32),
        tf.zeros(shape),
        tf.ones(shape),
        tf.constant(rng.normal(size=[*shape, 2]), tf.float32),
    )


@pytest.mark.parametrize("shape", [(4,), (2, 3)])
def test_the_values_of_an_ensemble_have_the_critics_first(shape):
    ensemble = CriticEnsembleNetwork((OBSERVATION, ACTION), num_critics=2, seed=1)
    ensemble.create_variables()
    action = tf.fill([*shape, 1], 0.5)
    values = critics.values(ensemble, steps(*shape), action)
    output, _ = ensemble((steps(*shape).observation, action))
    np.testing.assert_array_equal(values, np.moveaxis(output, -1, 0))
    np.testing.assert_array_equal(
        critics.all_values([ensemble], steps(*shape), action), values
    )


class Ten(keras.regularizers.Regularizer):
    def __call__(self, kernel):
        return 10.0


def test_a_mean_counts_masked_transitions_as_zero():
    valid = tf.constant([True, False, True])
    data = transitions.Transitions(
        steps(3), (), steps(3), tf.zeros([3]), tf.zeros([3]), valid
    )
    batch = updates.Batch(data, tf.constant([2.0, 1.0, 1.0]), training=True)
    layer = keras.layers.Dense(1, kernel_regularizer=Ten())
    layer.build([None, 2])
    loss = tf.constant([1.0, np.nan, 4.0])
    np.testing.assert_allclose(critics.mean(loss, batch), (2 * 1 + 4) / 3)
    np.testing.assert_allclose(critics.mean(loss, batch, layer), 12.0)


@pytest.mark.parametrize(
    ("valid", "weights", "expected"),
    [
        ([True, False], None, [True, False]),
        ([True, True], 0.0, [False, False]),
        ([True, True], [0.0, 0.5], [False, True]),
        ([[True, False], [True, True]], [0.0, 2.0], [[False, False], [True, True]]),
    ],
)
def test_masked_transitions_and_weights_of_zero_do_not_count(valid, weights, expected):
    empty = transitions.Transitions((), (), (), (), (), tf.constant(valid))
    weights = None if weights is None else tf.constant(weights)
    batch = updates.Batch(empty, weights, training=True)
    np.testing.assert_array_equal(critics.counted(batch), expected)
