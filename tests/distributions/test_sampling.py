import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.distributions import masked, sampling, shifted_categorical

SEED = tf.constant([3, 4], tf.int64)
PROBS = np.array([0.1, 0.0, 0.6, 0.3])
MANY = 20_000


def logits(size=MANY):
    with np.errstate(divide="ignore"):
        return tf.constant(np.tile(np.log(PROBS), [size, 1]), tf.float32)


def frequencies(samples):
    return np.bincount(np.ravel(samples), minlength=4) / MANY


def test_values_come_as_often_as_their_probabilities_say():
    drawn = sampling.sample(tfp.distributions.Categorical(logits()), SEED)
    np.testing.assert_allclose(frequencies(drawn), PROBS, atol=0.015)
    assert frequencies(drawn)[1] == 0


def test_probabilities_serve_as_well_as_logits():
    probs = np.tile(PROBS, [MANY, 1]).astype(np.float32)
    drawn = sampling.sample(tfp.distributions.Categorical(probs=probs), SEED)
    np.testing.assert_allclose(frequencies(drawn), PROBS, atol=0.015)


def test_masked_values_are_never_drawn():
    """Not even the last one, where the probabilities do not add up to 1 exactly."""
    mask = np.tile([True, False, True, False], [MANY, 1])
    drawn = sampling.sample(masked.MaskedCategorical(logits(), mask), SEED)
    np.testing.assert_allclose(frequencies(drawn), [1 / 7, 0, 6 / 7, 0], atol=0.015)
    assert frequencies(drawn)[[1, 3]].max() == 0


@pytest.mark.parametrize("number", [0.0, 1 - 2.0**-23])
def test_the_least_and_the_greatest_number_give_possible_values(monkeypatch, number):
    monkeypatch.setattr(
        sampling.seeds, "uniform", lambda seed, shape: tf.fill(shape, number)
    )
    rows = np.random.default_rng(0).normal(size=[1000, 8]).astype(np.float32)
    rows[:, [0, 7]] = -1e30
    drawn = sampling.sample(tfp.distributions.Categorical(rows), SEED).numpy()
    np.testing.assert_array_equal(drawn, 1 if number == 0 else 6)


def test_shape_and_dtype_are_those_of_tfp():
    distribution = shifted_categorical.ShiftedCategorical(
        tf.zeros([2, 3, 4]), dtype=tf.int64, shift=5
    )
    drawn = sampling.sample(distribution, SEED)
    assert drawn.shape == (2, 3)
    assert drawn.dtype == tf.int64
    assert set(np.ravel(drawn)) <= {5, 6, 7, 8}


def test_a_graph_draws_the_same_with_and_without_xla():
    def draw(logits, seed):
        return sampling.sample(tfp.distributions.Categorical(logits), seed)

    for size in (4, 300):
        rows = np.random.default_rng(1).normal(size=[size, 3]).astype(np.float32)
        plain = tf.function(draw)(rows, SEED)
        compiled = tf.function(draw, jit_compile=True)(rows, SEED)
        np.testing.assert_array_equal(plain, compiled)


def test_the_number_of_rows_may_be_unknown():
    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
    def draw(logits):
        return sampling.sample(tfp.distributions.Categorical(logits), SEED)

    expected = sampling.sample(tfp.distributions.Categorical(logits(7)), SEED)
    np.testing.assert_array_equal(draw(logits(7)), expected)


class Always(tfp.distributions.Categorical):
    """Samples in a way of its own."""

    def _sample_n(self, n, seed=None):
        return tf.fill([n, *self.batch_shape], 2)


@pytest.mark.parametrize(
    "distribution", [tfp.distributions.Normal([0.0], 1.0), Always(tf.zeros([5, 3]))]
)
def test_other_distributions_sample_themselves(distribution):
    np.testing.assert_array_equal(
        sampling.sample(distribution, SEED), distribution.sample(seed=[3, 4])
    )
