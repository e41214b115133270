import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import processors
from tfrl.networks import q_network
from tfrl.specs import array_spec, tensor_spec

OBSERVATION = tf.TensorSpec([4], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 2)


def operations(graph):
    ignored = {"Placeholder", "ReadVariableOp", "Identity", "NoOp", "Const"}
    return [op.type for op in graph.get_operations() if op.type not in ignored]


def test_defaults():
    net = q_network.QNetwork(OBSERVATION, ACTION)
    net.create_variables()
    shapes = [tuple(v.shape) for v in net.variables]
    assert shapes == [(4, 75), (75,), (75, 40), (40,), (40, 3), (3,)]
    kernel, bias = (v.numpy() for v in net.variables[-2:])
    assert np.abs(kernel).max() <= 0.03
    np.testing.assert_allclose(bias, -0.2, rtol=1e-6)
    np.testing.assert_array_equal(net.variables[1], 0)


def test_values_are_those_of_the_weights():
    net = q_network.QNetwork(OBSERVATION, ACTION, fc_layer_params=(5, 6), seed=1)
    net.create_variables()
    w1, b1, w2, b2, w3, b3 = (v.numpy() for v in net.variables)
    x = np.random.default_rng(0).normal(size=[7, 4]).astype(np.float32)
    hidden = np.maximum(np.maximum(x @ w1 + b1, 0) @ w2 + b2, 0)
    values, state = net(x)
    np.testing.assert_allclose(values, hidden @ w3 + b3, rtol=1e-5, atol=1e-6)
    assert values.dtype == tf.float32
    assert state == ()


@pytest.mark.parametrize("signature", [[2, 3, 4], [None, 3, 4], [None, None, 4]])
def test_sequences_give_the_same_as_their_steps(signature):
    net = q_network.QNetwork(OBSERVATION, ACTION, seed=1)
    x = tf.random.stateless_normal([2, 3, 4], [1, 2])
    function = tf.function(
        lambda x: net(x)[0], input_signature=[tf.TensorSpec(signature)]
    )
    steps = tf.stack([net(x[:, t])[0] for t in range(3)], axis=1)
    np.testing.assert_allclose(function(x), steps, rtol=1e-5, atol=1e-6)


def test_unbatched_observation_gives_unbatched_values():
    net = q_network.QNetwork(OBSERVATION, ACTION, seed=1)
    assert net(tf.ones([4]))[0].shape == (3,)


def test_graph_holds_nothing_but_the_layers():
    net = q_network.QNetwork(OBSERVATION, ACTION)
    net.create_variables()
    step_type = tf.TensorSpec([None], tf.int32)
    function = tf.function(lambda x, s: net(x, s)[0])
    graph = function.get_concrete_function(tf.TensorSpec([None, 4]), step_type).graph
    dense = ["MatMul", "BiasAdd"]
    assert operations(graph) == [*dense, "Relu", *dense, "Relu", *dense]


def test_graph_over_sequences_adds_two_reshapes():
    net = q_network.QNetwork(OBSERVATION, ACTION, fc_layer_params=())
    net.create_variables()
    function = tf.function(lambda x: net(x)[0])
    graph = function.get_concrete_function(tf.TensorSpec([None, 2, 4])).graph
    assert operations(graph) == ["Reshape", "MatMul", "BiasAdd", "Reshape"]


def test_traces_once():
    net = q_network.QNetwork(OBSERVATION, ACTION)
    net.create_variables()
    function = tf.function(lambda x, s: net(x, s)[0])
    for _ in range(3):
        function(tf.ones([2, 4]), tf.zeros([2], tf.int32))
    assert function.experimental_get_tracing_count() == 1


def test_compiles_with_xla():
    net = q_network.QNetwork(OBSERVATION, ACTION, seed=0)
    x = tf.random.stateless_normal([2, 4], [1, 2])
    compiled = tf.function(lambda x: net(x)[0], jit_compile=True)
    np.testing.assert_allclose(compiled(x), net(x)[0], rtol=1e-5, atol=1e-6)


def test_gradients_reach_every_variable():
    net = q_network.QNetwork(OBSERVATION, ACTION, seed=0)
    net.create_variables()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(net(tf.ones([2, 4]), training=True)[0])
    gradients = tape.gradient(loss, net.trainable_variables)
    assert all(float(tf.norm(g)) > 0 for g in gradients)
    # The bias of the last layer is added to the values of both observations.
    assert gradients[-1].numpy().tolist() == [2] * net.trainable_variables[-1].shape[0]


def test_actions_need_not_start_at_zero():
    spec = tensor_spec.BoundedTensorSpec([1], tf.int32, 3, 7)
    net = q_network.QNetwork(OBSERVATION, spec)
    assert net.create_variables() == tf.TensorSpec([5], tf.float32)


def test_array_specs_are_accepted():
    net = q_network.QNetwork(
        array_spec.ArraySpec((4,), np.float32),
        array_spec.BoundedArraySpec((), np.int64, 0, 1),
    )
    assert net.create_variables() == tf.TensorSpec([2], tf.float32)


def test_last_layer_can_have_an_activation():
    net = q_network.QNetwork(
        OBSERVATION, ACTION, q_layer_activation_fn=keras.activations.relu
    )
    np.testing.assert_array_equal(net(tf.zeros([1, 4]))[0], np.zeros([1, 3]))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ([ACTION, ACTION], "got 2 actions, expected one"),
        (
            tensor_spec.BoundedTensorSpec([2], tf.int32, 0, 1),
            r"got shape \(2,\), expected \(\) or \(1,\)",
        ),
        (
            tensor_spec.BoundedTensorSpec([], tf.float32, 0, 1),
            "expected a bounded integer.*train continuous ones with agents.Reinforc",
        ),
        (tf.TensorSpec([], tf.int32), "expected a bounded integer"),
    ],
)
def test_wrong_action_specs_are_refused(spec, message):
    with pytest.raises(ValueError, match=message):
        q_network.QNetwork(OBSERVATION, spec)


@processors.multiplies_in_half_precision
@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_keeps_weights_and_values_in_float32(dtype):
    network = q_network.QNetwork(
        OBSERVATION, ACTION, fc_layer_params=(16,), dtype=dtype, seed=0
    )
    plain = q_network.QNetwork(OBSERVATION, ACTION, fc_layer_params=(16,), seed=0)
    observation = tf.random.stateless_normal([5, *OBSERVATION.shape], [1, 2])
    values, expected = network(observation)[0], plain(observation)[0]
    assert values.dtype == tf.float32
    assert {v.dtype for v in network.trainable_variables} == {"float32"}
    # The hidden layer's product was rounded, and no more than that.
    np.testing.assert_allclose(values, expected, rtol=0.02, atol=1e-3)
    assert not np.array_equal(values, expected)
