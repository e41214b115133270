"""Losses of TD errors: by element, of Keras, and reduced by the loss function."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tests.agents import every_agent
from tfrl.agents import td_losses
from tfrl.trajectories import time_step as ts
from tfrl.utils import common

# Errors 1, 4 and 2, of which the last belongs to a boundary.
TARGETS = tf.constant([1.0, 5.0, 7.0])
PREDICTIONS = tf.constant([0.0, 1.0, 5.0])
VALID = tf.constant([True, True, False])


class Absolute(keras.losses.Loss):
    """A loss by element, without a mean over the last axis."""

    def call(self, y_true, y_pred):
        return tf.abs(y_true - y_pred)


# Agents whose loss goes another way than those of the fast tests.
OTHERS = [
    "DqnAgent-recurrent",
    "R2d2Agent-recurrent",
    "DdpgAgent-recurrent",
    "Td3Agent",
    "SacAgent",
    "SacAgent-ensemble",
    "CqlSacAgent",
    "DiscreteSacAgent",
    "MpoAgent",
]


def mean_square(targets, predictions):
    return tf.reduce_mean(tf.math.squared_difference(targets, predictions))


@pytest.fixture(autouse=True)
def forgets_warnings(monkeypatch):
    monkeypatch.setattr(td_losses, "_warned", set())


@pytest.mark.parametrize(
    ("loss_fn", "expected"),
    [
        (common.element_wise_squared_loss, [1, 16, 4]),
        (common.element_wise_huber_loss, [0.5, 3.5, 1.5]),
        (keras.losses.Huber(), [0.5, 3.5, 1.5]),
        (keras.losses.Huber(reduction="none"), [0.5, 3.5, 1.5]),
        (keras.losses.MeanSquaredError(reduction="sum"), [1, 16, 4]),
        (keras.losses.mean_squared_error, [1, 16, 4]),
        (tf_keras.losses.Huber(), [0.5, 3.5, 1.5]),
        (Absolute(), [1, 4, 2]),
    ],
)
@pytest.mark.parametrize("shape", [(3,), (1, 3)])
def test_each_transition_has_its_own_loss(loss_fn, expected, shape):
    values = [tf.reshape(x, shape) for x in (TARGETS, PREDICTIONS, VALID)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss = td_losses.per_transition(loss_fn, *values)
    np.testing.assert_allclose(loss, np.reshape(expected, shape))


@pytest.mark.parametrize(
    ("loss_fn", "mean"),
    [
        (mean_square, 8.5),
        (tf.compat.v1.losses.mean_squared_error, 8.5),
        (tf.compat.v1.losses.huber_loss, 2.0),
    ],
)
def test_a_loss_of_the_batch_is_the_mean_of_the_valid_transitions(loss_fn, mean):
    with pytest.warns(UserWarning, match="returns one number for the whole batch"):
        loss = td_losses.per_transition(loss_fn, TARGETS, PREDICTIONS, VALID)
    np.testing.assert_allclose(loss, [mean] * 3, rtol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # It has warned.
        none = td_losses.per_transition(loss_fn, TARGETS, PREDICTIONS, VALID & False)
    np.testing.assert_array_equal(none, [0, 0, 0])


def test_each_function_and_class_of_agents_is_warned_of_once():
    zeros = tf.zeros([2])
    functions = [lambda a, b: tf.reduce_mean(a - b), lambda a, b: tf.reduce_sum(a - b)]
    valid = tf.constant([True, True])
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for agent in ("DqnAgent", "SacAgent", "SacAgent"):
            for function in functions:
                td_losses.per_transition(function, zeros, zeros, valid, agent)
    assert len(warned) == 4


@pytest.mark.parametrize("loss", [1.0, None, np.zeros(2)])
def test_a_loss_that_is_no_tensor_is_refused(loss):
    zeros, valid = tf.zeros([2]), tf.constant([True, True])
    with pytest.raises(
        TypeError, match=r"^td_errors_loss_fn: .*returns a tensor, .* of"
    ):
        td_losses.per_transition(lambda *_: loss, zeros, zeros, valid)


def test_a_loss_that_is_neither_by_element_nor_a_number_is_refused():
    pair = tf.zeros([2, 3]), tf.zeros([2, 3]), tf.ones([2, 3], tf.bool)
    with pytest.raises(ValueError, match=r"shape \(2, 3\), got shape \(3,\); do not"):
        td_losses.per_transition(lambda y, q: tf.reduce_mean(y - q, 0), *pair)


@pytest.mark.parametrize("given", [keras.losses.Huber, "huber"])
def test_what_is_no_function_of_two_tensors_is_refused(given):
    with pytest.raises(TypeError, match=r"td_errors_loss_fn: .* write keras.losses.Hu"):
        td_losses.check(given)


def experience(spec, num_frames):
    """Returns two sequences of frames; in the first an episode ends."""
    shape = [2, num_frames]
    zeros = tf.nest.map_structure(lambda x: tf.zeros([*shape, *x.shape], x.dtype), spec)
    steps = np.ones([2, num_frames + 1], np.int32)
    steps[0, :2] = ts.StepType.LAST, ts.StepType.FIRST
    return zeros._replace(
        step_type=tf.constant(steps[:, :-1]),
        next_step_type=tf.constant(steps[:, 1:]),
        observation=tf.random.stateless_normal([*shape, 2], [1, 2]),
        action=tf.ones_like(zeros.action),
        reward=tf.ones(shape),
        discount=tf.ones(shape),
    )


@pytest.mark.parametrize(
    "name",
    [
        "DqnAgent",
        "DdpgAgent",
        *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS),
    ],
)
def test_an_agent_learns_the_same_from_a_mean_as_by_element(name):
    kind = every_agent.KINDS[name]
    spec = ts.time_step_spec(tf.TensorSpec([2], tf.float32))
    losses = []
    for loss_fn in (common.element_wise_squared_loss, mean_square):
        agent = kind.make(spec, td_errors_loss_fn=loss_fn)
        length = agent.train_sequence_length or 5
        agent.train(experience(agent.collect_data_spec, length))
        losses.append([v.numpy() for v in agent.variables])
    for by_element, of_mean in zip(*losses, strict=True):
        np.testing.assert_allclose(by_element, of_mean, rtol=1e-4, atol=1e-5)
