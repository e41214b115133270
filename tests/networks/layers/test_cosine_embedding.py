import numpy as np
import tensorflow as tf

from tfrl.networks.layers import cosine_embedding


def test_cosine_features_by_hand():
    features = cosine_embedding.cosine_features(tf.constant([0.0, 0.5, 1.0]), 4)
    np.testing.assert_allclose(
        features, [[1, 1, 1, 1], [1, 0, -1, 0], [1, -1, 1, -1]], atol=1e-6
    )
