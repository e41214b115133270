"""Quantile regression with the Huber loss as it is."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import losses as tfrl_losses
from tfrl.acme.tf import losses

RNG = np.random.default_rng(0)
PREDICTIONS = RNG.normal(size=[2, 3]).astype(np.float32)
NEXT = RNG.normal(size=[2, 4]).astype(np.float32)
LOGITS = RNG.normal(size=[2, 4]).astype(np.float32)
REWARD = np.array([0.5, -1], np.float32)
DISCOUNT = np.array([0.9, 0], np.float32)
TAU = np.array([[0.1, 0.5, 0.6], [0.3, 0.4, 0.9]], np.float32)


def loss_of(predictions, logits, huber_param=0.7):
    return losses.NonUniformQuantileRegression(huber_param)(
        losses.QuantileDistribution(predictions, tf.zeros_like(predictions)),
        REWARD,
        DISCOUNT,
        losses.QuantileDistribution(NEXT, logits),
        TAU,
    )


def test_the_loss_is_a_sum_over_pairs():
    weights = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
    expected = np.zeros(2)
    for b in range(2):
        for i in range(3):
            for j in range(4):
                error = REWARD[b] + DISCOUNT[b] * NEXT[b, j] - PREDICTIONS[b, i]
                size = abs(error)
                huber = size**2 / 2 if size <= 0.7 else 0.7 * (size - 0.35)
                slope = abs(TAU[b, i] - (error < 0))
                expected[b] += weights[b, j] * slope * huber
    np.testing.assert_allclose(loss_of(PREDICTIONS, LOGITS), expected, rtol=1e-5)


@pytest.mark.parametrize("huber_param", [0.5, 1.0, 2.0])
def test_it_is_a_multiple_of_the_loss_of_tfrl(huber_param):
    ours = tfrl_losses.quantile(PREDICTIONS, TAU, REWARD, DISCOUNT, NEXT, huber_param)
    loss = loss_of(PREDICTIONS, np.zeros_like(LOGITS), huber_param)
    np.testing.assert_allclose(loss, huber_param * ours, rtol=1e-5)


def test_no_gradient_flows_into_targets():
    predictions, logits = tf.constant(PREDICTIONS), tf.constant(LOGITS)
    following = tf.constant(NEXT)
    with tf.GradientTape() as tape:
        tape.watch([predictions, logits, following])
        loss = losses.NonUniformQuantileRegression(1.0)(
            losses.QuantileDistribution(predictions, logits[:, :3]),
            REWARD,
            DISCOUNT,
            losses.QuantileDistribution(following, logits),
            TAU,
        )
    gradients = tape.gradient(loss, [predictions, logits, following])
    assert gradients[0] is not None
    assert gradients[1:] == [None, None]


def test_a_loss_that_is_always_zero_is_refused():
    with pytest.raises(ValueError, match=r"huber_param: got 0\.0, .* 1 is usual"):
        losses.NonUniformQuantileRegression(0.0)


def loss_with(**arguments):
    """The loss with some arguments of another shape."""
    given = {
        "q_tm1": PREDICTIONS,
        "r_t": REWARD,
        "pcont_t": DISCOUNT,
        "values": NEXT,
        "logits": LOGITS,
        "tau": TAU,
        **arguments,
    }
    values, logits = given.pop("values"), given.pop("logits")
    given["q_tm1"] = losses.QuantileDistribution(given["q_tm1"], given["q_tm1"])
    following = losses.QuantileDistribution(values, logits)
    return losses.NonUniformQuantileRegression(1.0)(q_t=following, **given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tau": TAU[:, :2]}, r"tau: got shape \(2, 2\), expected \(2, 3\)"),
        ({"tau": TAU[:1]}, r"tau: got shape \(1, 3\), expected \(2, 3\)"),
        ({"tau": TAU[0]}, r"tau: got shape \(3,\), expected \(2, 3\)"),
        ({"r_t": REWARD[:1]}, r"r_t: got shape \(1,\), expected \(2,\)"),
        ({"r_t": REWARD[:1, None]}, r"r_t: got shape \(1,\), expected \(2,\)"),
        ({"r_t": REWARD[None]}, r"r_t: got shape \(1, 2\), expected \(2,\)"),
        ({"pcont_t": DISCOUNT[:1]}, r"pcont_t: got shape \(1,\), expected \(2,\)"),
        ({"pcont_t": 0.9}, r"pcont_t: got shape \(\), expected \(2,\)"),
        ({"logits": LOGITS[:1]}, r"q_t\.logits: got shape \(1, 4\), .* \(2, 4\)"),
        ({"logits": LOGITS[0]}, r"q_t\.logits: got shape \(4,\), .* \(2, 4\)"),
        (
            {"values": NEXT[:1], "logits": LOGITS[:1]},
            r"q_t\.values\[:, 0\]: got shape \(1,\), expected \(2,\)",
        ),
        (
            {"q_tm1": PREDICTIONS[:1], "tau": TAU[:1]},
            r"q_t\.values\[:, 0\]: got shape \(2,\), expected \(1,\)",
        ),
        ({"q_tm1": PREDICTIONS[0], "tau": TAU[0]}, r"q_tm1\.values: got rank 1"),
    ],
)
def test_nothing_is_broadcast(arguments, message):
    with pytest.raises(ValueError, match=message):
        loss_with(**arguments)


def test_rewards_and_discounts_may_be_columns():
    columns = loss_with(r_t=REWARD[:, None], pcont_t=DISCOUNT[:, None])
    np.testing.assert_array_equal(columns, loss_with())


def test_sizes_that_only_the_graph_knows_are_not_broadcast_either():
    spec = [tf.TensorSpec([None], tf.float32), tf.TensorSpec([None, 4], tf.float32)]
    loss = tf.function(lambda r, values: loss_with(r_t=r, values=values), spec)
    np.testing.assert_allclose(loss(REWARD, NEXT), loss_with(), rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="1 values"):
        loss(REWARD[:1], NEXT)
