import numpy as np

from tfrl.acme.tf.networks import duelling

INPUTS = np.random.default_rng(0).normal(size=[4, 3]).astype(np.float32)


def test_values_are_the_state_value_and_centred_advantages():
    mlp = duelling.DuellingMLP(2, [5])
    outputs = mlp(INPUTS)
    v0, _, v1, _, a0, _, a1, _ = mlp.get_weights()
    value = np.maximum(INPUTS @ v0, 0) @ v1
    advantages = np.maximum(INPUTS @ a0, 0) @ a1
    expected = value + advantages - advantages.mean(-1, keepdims=True)
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        np.mean(outputs, -1, keepdims=True), value, rtol=1e-4, atol=1e-6
    )
