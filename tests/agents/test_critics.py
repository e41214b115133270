"""What agents do with critics, against NumPy."""

import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents import critics, observation_embedding, transitions, updates
from tfrl.networks import CriticEnsembleNetwork
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = BoundedTensorSpec([1], tf.float32, -1, 1)


def squares(targets, predictions):
    return tf.math.squared_difference(targets, predictions)


def steps(*shape):
    rng = np.random.default_rng(0)
    return ts.TimeStep(
        tf.ones(shape, tf.int32),
        tf.zeros(shape),
        tf.ones(shape),
        tf.constant(rng.normal(size=[*shape, 2]), tf.float32),
    )


def regress(errors=None):
    """Returns the results, the targets, and the values `[N, B]` of an ensemble."""
    ensemble = CriticEnsembleNetwork((OBSERVATION, ACTION), num_critics=2, seed=1)
    ensemble.create_variables()
    valid = tf.constant([True, True, False])
    action = tf.fill([3, 1], 0.5)
    data = transitions.Transitions(
        steps(3), action, steps(3), tf.zeros([3]), tf.zeros([3]), valid
    )
    agent = types.SimpleNamespace(
        _td_errors_loss_fn=squares,
        _embedding=observation_embedding.ObservationEmbedding(None, OBSERVATION),
        _critic_networks=[ensemble],
    )
    targets = tf.constant([1.0, -2.0, 0.5])
    batch = updates.Batch(data, tf.ones([3]), training=True)
    found = critics.regress(agent, batch, targets, errors)
    return found, targets.numpy(), critics.values(ensemble, steps(3), action).numpy()


def tripled(targets, predictions):
    return 3 * squares(targets, predictions), targets - predictions


@pytest.mark.parametrize(("errors", "factor"), [(None, 1), (tripled, 3)])
def test_the_losses_of_an_ensemble_are_summed_and_its_largest_error_is_taken(
    errors, factor
):
    (loss, extra), targets, values = regress(errors)
    differences = targets - values
    differences[:, 2] = 0  # It is masked.
    expected = factor * (differences**2).sum(axis=0)
    np.testing.assert_allclose(extra["td_loss"], expected, rtol=1e-5)
    np.testing.assert_allclose(loss, expected.mean(), rtol=1e-5)
    largest = np.abs(differences).argmax(axis=0)
    np.testing.assert_allclose(
        extra["td_error"], differences[largest, np.arange(3)], rtol=1e-5
    )


def test_a_loss_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"loss_of_errors: got shape \(\)"):
        regress(lambda targets, values: (tf.reduce_sum(targets), targets - values))


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


def test_a_mean_counts_masked_transitions_as_zero():
    valid = tf.constant([True, False, True])
    data = transitions.Transitions(
        steps(3), (), steps(3), tf.zeros([3]), tf.zeros([3]), valid
    )
    batch = updates.Batch(data, tf.constant([2.0, 1.0, 1.0]), training=True)
    layer = keras.layers.Dense(1, kernel_regularizer=lambda kernel: 10.0)
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
