import numpy as np
import tensorflow as tf

from tfrl.acme.tf.networks import quantile
from tfrl.networks import sequential

EMBEDDINGS = np.random.default_rng(0).normal(size=[3, 4]).astype(np.float32)


def test_quantiles_are_an_mlp_of_the_product():
    head = quantile.IQNHead(2, hidden_sizes=[5], num_cosines=6)
    fractions = np.array([[0.1, 0.9]] * 3, np.float32)
    quantiles = head(EMBEDDINGS, fractions)
    kernel, bias, w0, _, w1, _ = head.trainable_weights
    cosines = np.cos(np.pi * fractions[..., np.newaxis] * np.arange(6))
    embedded = np.maximum(cosines @ kernel.numpy() + bias.numpy(), 0)
    product = EMBEDDINGS[:, np.newaxis] * embedded
    values = np.maximum(product @ w0.numpy(), 0) @ w1.numpy()
    np.testing.assert_allclose(quantiles.values, values, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(quantiles.fractions, fractions)
    np.testing.assert_allclose(quantiles.mean(), values.mean(1), rtol=1e-4, atol=1e-5)


def test_fractions_are_uniform_new_in_each_call_and_seeded():
    def run():
        network = sequential.Sequential(
            [quantile.IQNHead(2, [5], num_quantiles=400)], tf.TensorSpec([4]), seed=1
        )
        network.create_variables()
        return [network(EMBEDDINGS)[0] for _ in range(2)]

    (first, second), (again, _) = run(), run()
    np.testing.assert_array_equal(first.fractions, again.fractions)
    np.testing.assert_allclose(first.values, again.values, rtol=1e-6)
    assert not np.array_equal(first.fractions, second.fractions)
    histogram, _ = np.histogram(first.fractions, bins=4, range=(0, 1))
    np.testing.assert_allclose(histogram / 1200, 0.25, atol=0.05)
