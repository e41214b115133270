import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import categorical_q_network
from tfrl.specs import array_spec, tensor_spec

CategoricalQNetwork = categorical_q_network.CategoricalQNetwork
SPEC = tf.TensorSpec([4], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)


def test_logits_are_a_row_of_atoms_for_each_action():
    net = CategoricalQNetwork(SPEC, ACTION, num_atoms=5, fc_layer_params=(6,), seed=1)
    assert net.create_variables() == tf.TensorSpec([3, 5], tf.float32)
    assert net.num_atoms == 5
    w1, b1, w2, b2 = (v.numpy() for v in net.variables)
    x = np.random.default_rng(0).normal(size=[7, 4]).astype(np.float32)
    flat = np.maximum(x @ w1 + b1, 0) @ w2 + b2
    np.testing.assert_allclose(net(x)[0], flat.reshape(7, 3, 5), rtol=1e-5, atol=1e-6)


def test_defaults():
    net = CategoricalQNetwork(SPEC, ACTION)
    net.create_variables()
    assert [tuple(v.shape) for v in net.variables] == [(4, 153), (153,)]


def test_the_number_of_atoms_may_be_an_integer_of_numpy():
    net = CategoricalQNetwork(SPEC, ACTION, num_atoms=np.int64(5))
    assert net.create_variables() == tf.TensorSpec([3, 5], tf.float32)


def test_sequences_keep_their_dimensions():
    net = CategoricalQNetwork(SPEC, ACTION, num_atoms=5)
    function = tf.function(
        lambda x: net(x)[0], input_signature=[tf.TensorSpec([None, None, 4])]
    )
    assert function(tf.ones([2, 3, 4])).shape == (2, 3, 3, 5)


def test_nested_observations_are_combined():
    net = CategoricalQNetwork(
        {"a": SPEC, "b": tf.TensorSpec([2], tf.float32)},
        array_spec.BoundedArraySpec((1,), np.int64, 2, 3),
        num_atoms=5,
        preprocessing_combiner=keras.layers.Concatenate(),
    )
    assert net.create_variables() == tf.TensorSpec([2, 5], tf.float32)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="action_spec must be a BoundedTensorSpec"):
        CategoricalQNetwork(SPEC, tf.TensorSpec([], tf.int32))
    with pytest.raises(ValueError, match="expected a bounded integer"):
        CategoricalQNetwork(SPEC, tensor_spec.BoundedTensorSpec([], tf.float32, 0, 1))
    with pytest.raises(ValueError, match=r"num_atoms: expected .* at least 2, got 1"):
        CategoricalQNetwork(SPEC, ACTION, num_atoms=1)
