import numpy as np
import pytest
import tensorflow as tf

from tfrl.acme.tf.networks import noise
from tfrl.networks import sequential

ZEROS = tf.zeros([2000, 2])


def test_noise_has_its_deviation_and_is_clipped():
    actions = noise.ClippedGaussian(0.1, seed=0)(ZEROS).numpy()
    np.testing.assert_allclose(actions.std(), 0.1, rtol=0.05)
    np.testing.assert_allclose(actions.mean(), 0.0, atol=0.01)
    clipped = noise.ClippedGaussian(3.0, seed=0)(ZEROS).numpy()
    assert clipped.min() == -1
    assert clipped.max() == 1


def test_calls_and_leaves_differ_but_not_runs():
    def run(layer):
        return [leaf.numpy() for _ in range(2) for leaf in layer([ZEROS, ZEROS])]

    first = run(noise.ClippedGaussian(0.1, seed=3))
    again = run(noise.ClippedGaussian(0.1, seed=3))
    np.testing.assert_array_equal(first, again)
    for i in range(4):
        for j in range(i):
            assert not np.array_equal(first[i], first[j])


@pytest.mark.slow
def test_plain_and_compiled_graphs_draw_the_same_numbers():
    def two_calls(jit_compile):
        network = sequential.Sequential([noise.ClippedGaussian(0.1)], seed=5)
        call = tf.function(lambda x: network(x)[0], jit_compile=jit_compile)
        return [call(ZEROS), call(ZEROS)]

    np.testing.assert_allclose(two_calls(True), two_calls(False), atol=1e-6)


def test_negative_deviation_is_an_error():
    with pytest.raises(ValueError, match=r"stddev: .* got -1"):
        noise.ClippedGaussian(-1)
