"""The heads of Q-networks against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import pairs
from tfrl import networks
from tfrl.networks.construction import seeding
from tfrl.networks.heads import value_head
from tfrl.networks.layers.noisy import is_noisy
from tfrl.specs import tensor_spec

SPEC = tf.TensorSpec([4], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
X = np.random.default_rng(0).normal(size=[5, 4]).astype("f4")


def head(*args, **kwargs):
    layer = value_head.ValueHead(*args, seeds=seeding.SeedStream(1), **kwargs)
    layer(X)
    return layer


def dense(x, layer):
    return x @ layer.kernel.numpy() + layer.bias.numpy()


def test_one_dense_layer_by_default():
    layer = head(3)
    (last,) = layer._advantages
    np.testing.assert_allclose(layer(X), dense(X, last), rtol=1e-5, atol=1e-6)


def test_several_numbers_per_action():
    layer = head(3, 2)
    (last,) = layer._advantages
    np.testing.assert_allclose(
        layer(X), dense(X, last).reshape([5, 3, 2]), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("numbers", [None, 2])
def test_dueling_heads_have_a_value_and_advantages_of_mean_zero(numbers):
    layer = head(3, numbers, dueling_layer_params=(6,))
    stacks = []
    for hidden, last in (layer._values, layer._advantages):
        stacks.append(dense(np.maximum(dense(X, hidden), 0), last))
    value = stacks[0].reshape([5, 1, numbers or 1])
    advantages = stacks[1].reshape([5, 3, numbers or 1])
    expected = value + advantages - advantages.mean(axis=1, keepdims=True)
    outputs = layer(X).numpy().reshape([5, 3, numbers or 1])
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(outputs.mean(axis=1), value[:, 0], rtol=1e-4, atol=1e-6)


def test_further_outer_dimensions():
    layer = head(3, 2, dueling_layer_params=())
    folded = np.stack([X, 2 * X], axis=1)
    outputs = layer(folded)
    assert outputs.shape == (5, 2, 3, 2)
    np.testing.assert_allclose(outputs[:, 1], layer(2 * X), rtol=1e-4, atol=1e-6)


MAKERS = {
    "values": networks.QNetwork,
    "atoms": networks.CategoricalQNetwork,
    "quantiles": networks.QuantileQNetwork,
    "fractions": networks.ImplicitQuantileNetwork,
}


@pytest.mark.parametrize(("kind", "dueling"), pairs(MAKERS, [(3,), None]))
def test_every_network_may_be_dueling_and_noisy(kind, dueling):
    kwargs = {"fc_layer_params": (6,), "dueling_layer_params": dueling, "seed": 1}
    quiet, noisy = (
        MAKERS[kind](SPEC, ACTION, noisy_stddev=stddev, **kwargs)
        for stddev in (None, 0.5)
    )
    assert (is_noisy(quiet), is_noisy(noisy)) == (False, True)
    for net in (quiet, noisy):
        plain, again = net(X)[0], net(X)[0]
        np.testing.assert_array_equal(plain, again)
        noises = [net(X, training=True)[0] for _ in range(2)]
        assert np.allclose(*noises) is not is_noisy(net)
        copied = net.copy(name="copy")
        assert is_noisy(copied) == is_noisy(net)
        assert copied(X)[0].shape == plain.shape


def test_wrong_arguments():
    with pytest.raises(ValueError, match="numbers_per_action"):
        networks.QNetwork(SPEC, ACTION, numbers_per_action=0)


@pytest.mark.parametrize("outer", [(2,), (2, 5)])
def test_logits_and_value_are_linear(outer):
    head = value_head.PolicyValueHead(num_actions=4)
    inputs = np.random.default_rng(0).normal(size=[*outer, 3]).astype(np.float32)
    logits, value = head(inputs)
    assert logits.shape == (*outer, 4)
    assert value.shape == outer
    policy_kernel, _, value_kernel, _ = head.get_weights()
    np.testing.assert_allclose(logits, inputs @ policy_kernel, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        value, (inputs @ value_kernel)[..., 0], rtol=1e-5, atol=1e-6
    )
