import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.distributions import gumbel_softmax
from tfrl.distributions import utils as distribution_utils

LOGITS = tf.constant([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]])


def make(**kwargs):
    return gumbel_softmax.GumbelSoftmax(0.5, logits=LOGITS, **kwargs)


def test_mode_is_the_one_hot_of_the_likeliest():
    np.testing.assert_array_equal(make().mode(), [[0, 1, 0], [1, 0, 0]])
    assert make().mode().dtype == tf.int32
    assert make(dtype=tf.float32).mode().dtype == tf.float32


def test_relaxed_samples_become_one_hot():
    samples = make().sample(seed=1)
    np.testing.assert_allclose(tf.reduce_sum(samples, -1), [1.0, 1.0], rtol=1e-5)
    one_hot = make().convert_to_one_hot(samples)
    np.testing.assert_array_equal(tf.argmax(one_hot, -1), tf.argmax(samples, -1))


def test_density_of_relaxed_samples():
    x = tf.constant([[0.2, 0.5, 0.3], [0.9, 0.05, 0.05]])
    expected = tfp.distributions.RelaxedOneHotCategorical(0.5, logits=LOGITS)
    np.testing.assert_allclose(make().log_prob(x), expected.log_prob(x), rtol=1e-5)


def test_density_is_finite_at_the_edge():
    assert np.all(np.isfinite(make().log_prob(tf.one_hot([1, 0], 3))))


@pytest.mark.parametrize("as_probs", [False, True])
def test_one_hot_actions_have_the_probability_of_the_categorical(as_probs):
    probs = tf.nn.softmax(LOGITS)
    arguments = {"probs": probs} if as_probs else {"logits": LOGITS}
    distribution = gumbel_softmax.GumbelSoftmax(0.5, **arguments)
    log_prob = distribution.log_prob(tf.one_hot([2, 0], 3, dtype=tf.int32))
    np.testing.assert_allclose(log_prob, np.log([probs[0, 2], probs[1, 0]]), rtol=1e-5)


def test_gradient_flows_through_samples():
    with tf.GradientTape() as tape:
        tape.watch(LOGITS)
        sample = gumbel_softmax.GumbelSoftmax(0.5, logits=LOGITS).sample(seed=1)
        loss = tf.reduce_sum(sample[:, 0])
    assert np.any(tape.gradient(loss, LOGITS) != 0)


def test_it_can_be_made_again_from_its_parameters():
    parameters = distribution_utils.get_parameters(make())
    again = distribution_utils.make_from_parameters(parameters)
    assert isinstance(again, gumbel_softmax.GumbelSoftmax)
    np.testing.assert_array_equal(again.mode(), make().mode())
