"""Ornstein-Uhlenbeck noise: its statistics, its seeds, its state."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.utils import common


def draws(process, num):
    step = tf.function(lambda: process())
    return np.stack([step().numpy() for _ in range(num)])


def test_each_step_follows_the_recursion():
    process = common.OUProcess(tf.constant([4.0, -2.0]), damping=0.5, stddev=0.0)
    np.testing.assert_array_equal(draws(process, 2), [[2.0, -1.0], [1.0, -0.5]])


def test_the_noise_has_the_stationary_statistics_of_an_autoregressive_process():
    # x' = a x + N(0, s^2) has variance s^2 / (1 - a^2) and autocorrelation a.
    damping, stddev = 0.15, 0.2
    process = common.OUProcess(lambda: tf.zeros([2000]), damping, stddev, seed=3)
    x = draws(process, 60)
    keep = 1 - damping
    np.testing.assert_allclose(x[-1].std(), stddev / np.sqrt(1 - keep**2), rtol=0.05)
    np.testing.assert_allclose(np.corrcoef(x[-2], x[-1])[0, 1], keep, atol=0.03)


def test_without_damping_the_variance_grows_with_time():
    x = draws(common.OUProcess(tf.zeros([4000]), 0.0, 1.0, seed=1), 9)
    np.testing.assert_allclose(x[8].std(), 3.0, rtol=0.05)


def test_seeds_reproduce_and_dtypes_are_kept():
    def run(seed):
        return draws(common.OUProcess(tf.zeros([3], tf.float64), seed=seed), 3)

    assert run(1).dtype == np.float64
    np.testing.assert_array_equal(run(1), run(1))
    assert not np.array_equal(run(1), run(2))


def test_a_seed_for_a_step_decides_alone():
    one, other = (common.OUProcess(tf.zeros([3]), seed=i) for i in (1, 2))
    seed = tf.constant([5, 6], tf.int64)
    np.testing.assert_array_equal(one(seed), other(seed))


def test_a_checkpoint_holds_the_noise_and_its_stream(tmp_path):
    process = common.ornstein_uhlenbeck_process(tf.zeros([3]), seed=1)
    process()
    path = tf.train.Checkpoint(noise=process).write(str(tmp_path / "noise"))
    expected = draws(process, 3)
    resumed = common.OUProcess(tf.ones([3]), seed=2)
    tf.train.Checkpoint(noise=resumed).read(path).assert_consumed()
    np.testing.assert_array_equal(draws(resumed, 3), expected)


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({"damping": 1.5}, r"damping: .* got 1\.5"),
        ({"stddev": -0.1}, r"stddev: .* got -0\.1"),
    ],
)
def test_numbers_that_make_no_process_are_errors(kwargs, text):
    with pytest.raises(ValueError, match=text):
        common.OUProcess(tf.zeros([1]), **kwargs)


def test_categorical_logits_mean_the_expectation_over_the_support():
    probabilities = np.array([[[0.2, 0.8], [0.5, 0.5]]], np.float32)
    values = common.convert_q_logits_to_values(
        tf.math.log(probabilities), tf.constant([-1.0, 4.0])
    )
    np.testing.assert_allclose(values, [[3.0, 1.5]], rtol=1e-6)
