import typing

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.keras_layers import DynamicUnroll, InnerReshape, RNNWrapper
from tfrl.networks import (
    categorical_projection_network,
    network,
    q_network,
    sequential,
)
from tfrl.specs import tensor_spec

OBSERVATION = tf.TensorSpec([2], tf.float32)
Sequential = sequential.Sequential


class Counter(network.Network):
    """Adds how often it was called, which is its state."""

    def __init__(self, step=1.0, name=None):
        super().__init__(state_spec=tf.TensorSpec([], tf.float32), name=name)
        self.step = step

    def call(self, inputs, step_type=None, network_state=(), training=False):
        state = network_state + self.step
        return inputs + state[:, tf.newaxis], state


def test_layers_are_applied_in_turn():
    net = Sequential(
        [keras.layers.Dense(3, activation=tf.nn.relu), keras.layers.Lambda(tf.square)],
        input_spec=OBSERVATION,
    )
    assert net.create_variables() == tf.TensorSpec([3], tf.float32)
    kernel, bias = (v.numpy() for v in net.variables)
    x = np.random.default_rng(0).normal(size=[4, 2]).astype(np.float32)
    output, state = net(x)
    expected = np.maximum(x @ kernel + bias, 0) ** 2
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)
    assert state == ()
    assert net.state_spec == ()


def test_further_arguments_are_for_the_last_layer():
    action = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
    head = categorical_projection_network.CategoricalProjectionNetwork(action)
    mask = tf.constant([[True, False, True]])
    distribution, _ = Sequential([keras.layers.Dense(4), head])(
        tf.ones([1, 2]), mask=mask
    )
    np.testing.assert_array_equal(distribution.probs_parameter()[:, 1], [0.0])
    with pytest.raises(TypeError, match="mask: got arguments for the last layer"):
        Sequential([head, keras.layers.Dense(4)])(tf.ones([1, 2]), mask=mask)


def test_layers_are_shared_up_to_the_first_that_differs_or_has_a_state():
    first, second, end = (keras.layers.Dense(2) for _ in range(3))
    whole = Sequential([first, second, keras.layers.Dense(3)])
    assert sequential.shared_layers(whole, Sequential([first, second, end])) == [
        first,
        second,
    ]
    assert sequential.shared_layers(whole, Sequential([first, end])) == [first]
    assert sequential.shared_layers(whole, Sequential([end, second])) == []
    # A network keeps a layer of its own.
    assert sequential.shared_layers(whole, Sequential([first, second])) == [first]
    assert sequential.shared_layers(whole, end) == []
    counter = Counter()
    recurrent = [Sequential([first, counter, end, end]) for _ in range(2)]
    assert sequential.shared_layers(*recurrent) == [first]


def test_state_spec_is_the_tuple_of_the_states_there_are():
    net = Sequential([keras.layers.Flatten(), Counter(), Counter(10.0)])
    assert net.state_spec == (tf.TensorSpec([]), tf.TensorSpec([]))
    output, state = net(tf.zeros([1, 2]), network_state=net.get_initial_state(1))
    np.testing.assert_array_equal(output, [[11.0, 11.0]])
    output, state = net(tf.zeros([1, 2]), network_state=state)
    np.testing.assert_array_equal(output, [[22.0, 22.0]])
    np.testing.assert_array_equal(state, [[2.0], [20.0]])


def test_training_reaches_the_layers():
    net = Sequential([keras.layers.Dropout(0.5)], seed=1)
    ones = tf.ones([32, 2])
    np.testing.assert_array_equal(net(ones)[0], ones)
    assert np.any(net(ones, training=True)[0] == 0)


def test_input_spec_comes_from_a_first_network():
    action = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
    net = Sequential([q_network.QNetwork(OBSERVATION, action)])
    assert net.input_tensor_spec == OBSERVATION
    assert net.create_variables() == tf.TensorSpec([2], tf.float32)


def test_copy_has_layers_of_its_own():
    offset = 3.0
    net = Sequential(
        [
            keras.layers.Dense(2, activation=lambda x: x + offset),
            keras.layers.Lambda(lambda x: x * offset),
            keras.Sequential([keras.layers.Dense(2)]),
            Counter(5.0),
        ],
        OBSERVATION,
    )
    net.create_variables()
    copied = net.copy(name="Other")
    copied.create_variables()
    assert copied.name == "Other"
    assert not {id(v) for v in net.variables} & {id(v) for v in copied.variables}
    for ours, theirs in zip(copied.variables, net.variables, strict=True):
        ours.assign(theirs)
    x, state = tf.ones([3, 2]), net.get_initial_state(3)
    np.testing.assert_array_equal(
        copied(x, network_state=state)[0], net(x, network_state=state)[0]
    )


class Sixes(keras.initializers.Initializer):
    """Known to Keras by no name."""

    def __call__(self, shape, dtype=None, **kwargs):
        return 6.0 * tf.ones(shape, dtype)


@pytest.mark.parametrize(
    ("initializer", "value"),
    [
        (tf.constant_initializer(3.0), 3.0),
        (tf.compat.v1.constant_initializer(4.0), 4.0),
        (lambda shape, dtype=None: 5.0 * tf.ones(shape, dtype), 5.0),
        (Sixes(), 6.0),
    ],
)
def test_initialisers_that_keras_cannot_look_up_are_copied(initializer, value):
    original = sequential.Sequential(
        [keras.layers.Dense(1, kernel_initializer=initializer)]
    )
    copied = original.copy()
    copied.create_variables(tf.TensorSpec([2]))
    np.testing.assert_array_equal(copied.layers[0].kernel, [[value], [value]])


def test_lookup_is_copied_with_its_vocabulary():
    original = sequential.Sequential(
        [
            keras.layers.IntegerLookup(
                vocabulary=[7, 9], num_oov_indices=0, output_mode="multi_hot"
            )
        ]
    )
    one_hot, _ = original.copy()(tf.constant([[9], [7]]))
    np.testing.assert_array_equal(one_hot, [[0, 1], [1, 0]])


def test_configuration_describes_the_layers_of_another():
    original = sequential.Sequential(
        [
            keras.layers.Dense(3, activation="relu"),
            sequential.Sequential([keras.layers.Dense(4, use_bias=False)]),
            keras.layers.LSTM(2, return_state=True, return_sequences=True),
        ],
        name="torso",
    )
    other = sequential.Sequential.from_config(original.get_config())
    first, second, third = other.layers
    assert (first.units, first.activation) == (3, keras.activations.relu)
    assert (second.layers[0].units, second.layers[0].use_bias) == (4, False)
    assert isinstance(third, RNNWrapper)
    assert other.name == "torso"
    assert other.state_spec == original.state_spec
    assert first is not original.layers[0]


def test_unseeded_layers_follow_the_seed_and_differ():
    def weights(seed):
        layers = [keras.layers.Dense(2), keras.layers.Dense(2)]
        net = Sequential(layers, OBSERVATION, seed=seed)
        net.create_variables()
        return [v.numpy() for v in net.variables]

    first, same, other = weights(1), weights(1), weights(2)
    np.testing.assert_array_equal(first[0], same[0])
    assert not np.array_equal(first[0], other[0])
    assert not np.array_equal(first[0], first[2])


def test_unseeded_layers_follow_the_global_seed():
    weights = []
    for _ in range(2):
        tf.random.set_seed(7)
        net = Sequential([keras.layers.Dense(2)], OBSERVATION)
        net.create_variables()
        weights.append(net.variables[0].numpy())
    np.testing.assert_array_equal(*weights)


def test_seeds_of_the_user_stay():
    def weights(seed):
        initializer = keras.initializers.GlorotUniform(seed=9)
        layer = keras.layers.Dense(2, kernel_initializer=initializer)
        net = Sequential([layer], OBSERVATION, seed=seed)
        net.create_variables()
        return net.variables[0].numpy()

    np.testing.assert_array_equal(weights(1), weights(2))


def test_dropout_follows_the_seed():
    def output():
        net = Sequential([keras.layers.Dropout(0.5)], OBSERVATION, seed=4)
        return net(tf.ones([16, 2]), training=True)[0].numpy()

    np.testing.assert_array_equal(output(), output())


def test_no_layers_are_refused():
    with pytest.raises(ValueError, match="`layers` must not be empty"):
        Sequential([])


def test_functions_are_applied_in_turn():
    bias = 1.0
    net = Sequential([tf.nn.relu, lambda x: x + bias, tf.square])
    inputs = tf.constant([[-3.0, 2.0]])
    np.testing.assert_array_equal(net(inputs)[0], [[1.0, 9.0]])
    np.testing.assert_array_equal(net.copy()(inputs)[0], [[1.0, 9.0]])


def test_distributions_pass_between_layers():
    net = Sequential(
        [
            lambda x: tfp.distributions.Normal(x, tf.ones_like(x)),
            lambda normal: tfp.distributions.LogNormal(normal.mean() + 1, normal.scale),
            keras.layers.Lambda(lambda distribution: distribution.mean()),
        ],
        OBSERVATION,
    )
    # The mean of a log-normal distribution is exp(mu + sigma^2 / 2).
    output = tf.function(lambda x: net(x)[0])(tf.constant([[0.0, 1.0]]))
    np.testing.assert_allclose(output, np.exp([[1.5, 2.5]]), rtol=1e-6)


@pytest.mark.parametrize("layer", [keras.layers.Dense, "relu", None])
def test_other_entries_are_refused(layer):
    with pytest.raises(TypeError, match=r"layers\[1\]: .*keras Layer, or functions"):
        Sequential([keras.layers.Dense(1), layer])


def test_recurrent_layers_that_keep_their_state_are_refused():
    with pytest.raises(NotImplementedError, match="return_state==False"):
        Sequential([keras.layers.LSTM(2)])


@pytest.mark.parametrize("kind", ["sequential", "functional"])
@pytest.mark.parametrize("outer", [[4], [4, 3], [1, 3], [2, 3, 5]])
def test_keras_model_takes_any_outer_dimensions_as_its_layers_do(kind, outer):
    hidden, last = keras.layers.Dense(5, activation="tanh"), keras.layers.Dense(2)
    inputs = keras.Input([2])
    model = {
        "sequential": lambda: keras.Sequential([hidden, last]),
        "functional": lambda: keras.Model(inputs, last(hidden(inputs))),
    }[kind]()
    net = Sequential([model], input_spec=OBSERVATION)
    net.create_variables()
    x = np.random.default_rng(0).normal(size=[*outer, 2]).astype(np.float32)
    np.testing.assert_allclose(net(x)[0], last(hidden(x)), rtol=1e-5, atol=1e-6)
    traced = tf.function(
        lambda x: net(x)[0],
        input_signature=[tf.TensorSpec([None] * len(outer) + [2])],
    )
    np.testing.assert_allclose(traced(x), last(hidden(x)), rtol=1e-5, atol=1e-6)


# --- Recurrent layers.

RETURNS = {"return_sequences": True, "return_state": True}


class Decay(keras.layers.Layer):
    """A recurrent cell of the user's own: a leaky sum, which has a function."""

    def __init__(self, units, activation):
        super().__init__()
        self.state_size = self.output_size = units
        self.activation = activation

    def call(self, inputs, states):
        total = 0.5 * states[0] + inputs
        return self.activation(total), [total]

    def get_initial_state(self, batch_size=None):
        return tf.zeros([batch_size, self.state_size])

    def get_config(self):
        return {"units": self.state_size, "activation": self.activation}


def recurrent_net(**kwargs):
    stack = [keras.layers.LSTMCell(1), keras.layers.GRUCell(8)]
    return Sequential(
        [
            keras.layers.Dense(2),
            keras.layers.LSTM(2, **RETURNS),
            keras.layers.RNN(keras.layers.StackedRNNCells(stack), **RETURNS),
            InnerReshape([8], [4, 2]),
            keras.layers.Dense(2),
            InnerReshape([None] * 2, [-1]),
            keras.layers.GRU(2, **RETURNS),
            keras.layers.SimpleRNNCell(3),
            DynamicUnroll(keras.layers.LSTMCell(2)),
        ],
        OBSERVATION,
        **kwargs,
    )


def test_recurrent_layers_and_cells_mix_with_others():
    net = recurrent_net(seed=1)
    assert net.create_variables() == tf.TensorSpec([2], tf.float32)
    assert tf.nest.map_structure(lambda s: s.shape[0], net.state_spec) == (
        (2, 2),
        ([1, 1], 8),
        2,
        3,
        (2, 2),
    )
    assert {spec.name for spec in tf.nest.flatten(net.state_spec)} == {None}
    kinds = [type(layer) for layer in net.layers]
    assert kinds.count(RNNWrapper) == 3
    assert kinds.count(DynamicUnroll) == 2


@pytest.mark.slow
def test_recurrent_sequence_equals_steps_with_the_state_reset_at_first():
    net = recurrent_net(seed=1)
    net.create_variables()
    observations = tf.random.stateless_normal([2, 6, 2], [1, 2])
    step_types = tf.constant([[1, 1, 2, 0, 1, 1], [0, 1, 1, 1, 1, 0]])
    outputs, last = net(observations, step_type=step_types)
    state, single = net.get_initial_state(2), []
    for t in range(6):
        output, state = net(
            observations[:, t], step_type=step_types[:, t], network_state=state
        )
        single.append(output)
    assert outputs.shape == [2, 6, 2]
    np.testing.assert_allclose(outputs, tf.stack(single, 1), atol=1e-6)
    tf.nest.map_structure(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), last, state
    )


def test_without_step_types_a_keras_lstm_is_applied_as_it_is():
    lstm = keras.layers.LSTM(3, **RETURNS)
    net = Sequential([lstm], OBSERVATION)
    inputs = tf.random.stateless_normal([2, 6, 2], [1, 2])
    outputs, (state,) = net(inputs)
    expected, *expected_state = lstm(inputs)
    np.testing.assert_array_equal(outputs, expected)
    np.testing.assert_array_equal(state, expected_state)


def test_copy_makes_new_cells_also_of_the_users_own():
    def twice(x):
        return 2 * x

    net = Sequential(
        [
            keras.layers.RNN(Decay(2, twice), **RETURNS),
            DynamicUnroll(Decay(2, twice)),
            keras.layers.LSTM(3, **RETURNS),
        ],
        OBSERVATION,
    )
    net.create_variables()
    copied = net.copy()
    copied.create_variables()
    assert copied.layers[0].cell is not net.layers[0].cell
    assert copied.state_spec == net.state_spec
    assert not {id(v) for v in net.variables} & {id(v) for v in copied.variables}
    for ours, theirs in zip(copied.variables, net.variables, strict=True):
        ours.assign(theirs)
    inputs = tf.ones([2, 5, 2])
    np.testing.assert_array_equal(copied(inputs)[0], net(inputs)[0])


def test_seed_reaches_recurrent_cells():
    def weights(seed):
        net = recurrent_net(seed=seed)
        net.create_variables()
        return np.concatenate([np.ravel(v) for v in net.trainable_variables])

    np.testing.assert_array_equal(weights(1), weights(1))
    assert not np.array_equal(weights(1), weights(2))


def test_output_signature():
    net = recurrent_net()
    spec = tf.TensorSpec([4, 6, 2], tf.float32)
    assert net.compute_output_signature(spec).shape == [4, 6, 2]


class TwoSums(keras.layers.Layer):
    """A recurrent cell whose state is a dictionary with a list."""

    state_size: typing.ClassVar = {"sums": [2, 2]}
    output_size = 2

    def call(self, inputs, states):
        sums = [total + inputs for total in states["sums"]]
        return sums[0], {"sums": sums}

    def get_initial_state(self, batch_size=None):
        return {"sums": [tf.zeros([batch_size, 2])] * 2}


def test_the_state_keeps_the_nest_of_the_cell():
    net = Sequential([DynamicUnroll(TwoSums())], OBSERVATION)
    number = tf.TensorSpec([2], tf.float32)
    assert net.state_spec == ({"sums": [number, number]},)
    net.create_variables()
    _, state = net(tf.ones([3, 5, 2]), network_state=net.get_initial_state(3))
    tf.nest.assert_same_structure(state, net.state_spec)
    np.testing.assert_array_equal(state[0]["sums"][1], np.full([3, 2], 5.0))
