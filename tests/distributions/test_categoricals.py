import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.distributions import masked, shifted_categorical

LOGITS = np.log([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]]).astype(np.float32)


def shifted(shift=3, **kwargs):
    return shifted_categorical.ShiftedCategorical(LOGITS, shift=shift, **kwargs)


def test_shifted_samples_start_at_the_shift():
    samples = shifted().sample(200, seed=1)
    assert samples.dtype == tf.int32
    assert set(np.unique(samples)) == {3, 4, 5}


def test_shifted_probabilities():
    np.testing.assert_allclose(shifted().prob([5, 3]), [0.7, 0.5], rtol=1e-5)
    np.testing.assert_allclose(shifted().log_prob([3, 4]), np.log([0.1, 0.25]), 1e-5)
    np.testing.assert_allclose(shifted().cdf([4, 2]), [0.3, 0.0], rtol=1e-5)


def test_shifted_mode_and_mean():
    np.testing.assert_array_equal(shifted().mode(), [5, 3])
    np.testing.assert_allclose(shifted().mean(), [4.6, 3.75], rtol=1e-5)


def test_shift_may_be_one_for_each_dimension():
    distribution = shifted(shift=np.array([10, 20]))
    np.testing.assert_array_equal(distribution.mode(), [12, 20])
    assert distribution.batch_shape == (2,)


def test_shifted_entropy_and_divergence_are_those_of_the_categorical():
    plain = tfp.distributions.Categorical(LOGITS)
    np.testing.assert_allclose(shifted().entropy(), plain.entropy(), rtol=1e-6)
    np.testing.assert_allclose(
        tfp.distributions.kl_divergence(shifted(), shifted()), [0, 0], atol=1e-6
    )


def test_shifted_copies_and_returns_from_functions():
    distribution = shifted(dtype=tf.int64)
    assert distribution.parameters["shift"] == 3
    np.testing.assert_array_equal(distribution.copy(shift=0).mode(), [2, 0])
    sample = tf.function(lambda: shifted().sample(seed=1))()
    assert np.all(sample >= 3)


def test_shift_is_needed():
    with pytest.raises(ValueError, match="ShiftedCategorical expects a shift value"):
        shifted_categorical.ShiftedCategorical(LOGITS)


@pytest.mark.parametrize("neg_inf", [-1e10, None])
def test_masked_values_never_come_up(neg_inf):
    mask = [[True, True, False], [False, True, True]]
    distribution = masked.MaskedCategorical(LOGITS, mask, neg_inf=neg_inf)
    samples = distribution.sample(300, seed=1).numpy()
    assert set(samples[:, 0]) == {0, 1}
    assert set(samples[:, 1]) == {1, 2}
    np.testing.assert_array_equal(distribution.mode(), [1, 1])
    np.testing.assert_allclose(distribution.prob([1, 1]), [2 / 3, 0.5], rtol=1e-5)
    np.testing.assert_array_equal(distribution.prob([2, 0]), [0, 0])


def test_masked_entropy_is_that_of_what_is_left():
    mask = [[True, True, False], [True, False, False]]
    distribution = masked.MaskedCategorical(LOGITS, mask, neg_inf=None)
    p = np.array([1 / 3, 2 / 3])
    np.testing.assert_allclose(
        distribution.entropy(), [-np.sum(p * np.log(p)), 0], rtol=1e-5, atol=1e-6
    )


def test_masked_gradients_are_finite():
    logits = tf.Variable(LOGITS)
    with tf.GradientTape() as tape:
        distribution = masked.MaskedCategorical(
            logits, [[1, 1, 0], [1, 0, 0]], neg_inf=None
        )
        loss = tf.reduce_sum(distribution.entropy() + distribution.log_prob([0, 0]))
    assert np.all(np.isfinite(tape.gradient(loss, logits)))


def test_masked_takes_logits_alone():
    with pytest.raises(ValueError, match="Must provide masked predictions as logits"):
        masked.MaskedCategorical(None, [True], probs=[1.0])
