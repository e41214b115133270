import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import processors
from tfrl.keras_layers import DynamicUnroll

# The lengths of sequences, and whether XLA compiles the loop over them.
SLOW = [(40, None), (20, True)]
BATCH, TIME, FEATURES, UNITS = 3, 6, 2, 4


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_by_hand(cell, inputs, reset, h, c):
    """Hochreiter and Schmidhuber 1997 with forget gates, gates in Keras' order."""
    kernel, recurrent, bias = (v.numpy() for v in cell.trainable_variables)
    outputs = []
    for t in range(inputs.shape[1]):
        h, c = (np.where(reset[:, t, None], 0, s) for s in (h, c))
        i, f, g, o = np.split(inputs[:, t] @ kernel + h @ recurrent + bias, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs, axis=1), (h, c)


def gru_by_hand(cell, inputs, reset, h):
    """Cho et al. 2014, the reset gate after the product, gates in Keras' order."""
    kernel, recurrent, (bias, recurrent_bias) = (
        v.numpy() for v in cell.trainable_variables
    )
    outputs = []
    for t in range(inputs.shape[1]):
        h = np.where(reset[:, t, None], 0, h)
        from_input = np.split(inputs[:, t] @ kernel + bias, 3, axis=1)
        from_state = np.split(h @ recurrent + recurrent_bias, 3, axis=1)
        z = sigmoid(from_input[0] + from_state[0])
        r = sigmoid(from_input[1] + from_state[1])
        h = z * h + (1 - z) * np.tanh(from_input[2] + r * from_state[2])
        outputs.append(h)
    return np.stack(outputs, axis=1), h


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return (
        rng.normal(size=[BATCH, TIME, FEATURES]).astype(np.float32),
        rng.random([BATCH, TIME]) < 0.3,
        *rng.normal(size=[2, BATCH, UNITS]).astype(np.float32),
    )


def shuffled(cell):
    """A built cell whose biases are not zero."""
    cell.build((None, FEATURES))
    rng = np.random.default_rng(1)
    for v in cell.trainable_variables:
        v.assign(rng.normal(size=v.shape) / 2)
    return cell


class Sum(keras.layers.Layer):
    """A cell of the kind that takes its only state as it is."""

    output_size = 1
    state_size = 1

    def call(self, inputs, states):
        total = inputs + states
        return total, total

    def get_initial_state(self, inputs=None, batch_size=None, dtype=None):
        return tf.zeros([batch_size, 1], dtype)


class ListSum(keras.layers.Layer):
    """The cell of Keras' manual: its only state comes and goes in a list."""

    output_size = 1
    state_size = 1

    def call(self, inputs, states):
        total = inputs + keras.ops.matmul(states[0], [[1.0]])
        return total, [total]

    def get_initial_state(self, batch_size=None):
        return tf.zeros([batch_size, 1])


class FromOne(Sum):
    """A cell that does not begin at zero."""

    def get_initial_state(self, batch_size=None):
        return tf.ones([batch_size, 1])


@pytest.mark.parametrize("loop", [False, True])
def test_lstm_matches_numpy(data, loop):
    inputs, reset, h, c = data
    cell = shuffled(keras.layers.LSTMCell(UNITS))
    layer = DynamicUnroll(cell)

    def run(x, mask, state):
        return layer(x, initial_state=state, reset_mask=mask)

    if loop:
        # Of unknown length, which runs in a tf.while_loop.
        run = tf.function(run, reduce_retracing=True).get_concrete_function(
            tf.TensorSpec([None, None, FEATURES]),
            tf.TensorSpec([None, None], tf.bool),
            [tf.TensorSpec([None, UNITS])] * 2,
        )
    outputs, state = run(tf.constant(inputs), tf.constant(reset), [h, c])
    expected, expected_state = lstm_by_hand(cell, inputs, reset, h, c)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    np.testing.assert_allclose(state, expected_state, atol=1e-5)


def test_gru_matches_numpy(data):
    inputs, reset, h, _ = data
    cell = shuffled(keras.layers.GRUCell(UNITS))
    layer = DynamicUnroll(cell)
    outputs, state = layer(inputs, initial_state=h, reset_mask=tf.constant(reset))
    expected, expected_state = gru_by_hand(cell, inputs, reset, h)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    np.testing.assert_allclose(state, expected_state, atol=1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "SimpleRNN"])
def test_without_resets_it_is_the_keras_layer(data, kind):
    inputs = data[0]
    keras_layer = getattr(keras.layers, kind)(
        UNITS, return_sequences=True, return_state=True
    )
    expected, *expected_state = keras_layer(inputs)
    layer = DynamicUnroll(keras_layer.cell)
    outputs, state = layer(inputs)
    np.testing.assert_allclose(outputs, expected, atol=1e-6)
    np.testing.assert_allclose(tf.nest.flatten(state), expected_state, atol=1e-6)


@pytest.mark.parametrize(
    ("length", "jit_compile"),
    [(20, None), *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)],
)
def test_the_loop_and_its_gradients_equal_single_steps(length, jit_compile):
    rng = np.random.default_rng(2)
    inputs = tf.constant(rng.normal(size=[2, length, FEATURES]), tf.float32)
    reset = tf.constant(rng.random([2, length]) < 0.2)
    layer = DynamicUnroll(
        keras.layers.StackedRNNCells(
            [keras.layers.LSTMCell(3), keras.layers.GRUCell(2)]
        )
    )
    layer.build(inputs.shape)

    @tf.function(autograph=False, jit_compile=jit_compile)
    def at_once():
        with tf.GradientTape() as tape:
            outputs, state = layer(inputs, reset_mask=reset)
            loss = tf.reduce_sum(tf.square(outputs))
        return outputs, state, tape.gradient(loss, layer.trainable_variables)

    outputs, state, gradients = at_once()
    one_state, single = layer.get_initial_state(batch_size=2), []
    with tf.GradientTape() as tape:
        for t in range(length):
            output, one_state = layer(
                inputs[:, t], initial_state=one_state, reset_mask=reset[:, t]
            )
            single.append(output)
        loss = tf.reduce_sum(tf.square(tf.stack(single, axis=1)))
    np.testing.assert_allclose(outputs, tf.stack(single, axis=1), atol=1e-6)
    tf.nest.map_structure(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), state, one_state
    )
    expected = tape.gradient(loss, layer.trainable_variables)
    for ours, theirs in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_compiled_program_does_not_grow_with_the_sequence():
    layer = DynamicUnroll(keras.layers.LSTMCell(UNITS))

    def traced(length, jit_compile=True):
        inputs = tf.zeros([2, length, FEATURES])
        function = tf.function(layer, autograph=False, jit_compile=jit_compile)
        graph = function.get_concrete_function(inputs).graph
        assert graph.structured_outputs[0].shape == [2, length, UNITS]
        return len(graph.get_operations())

    layer.build((None, None, FEATURES))
    assert traced(30) == traced(10)
    assert traced(10) < traced(10, jit_compile=None) < traced(30, jit_compile=None)


@pytest.mark.parametrize("cell", [Sum, ListSum])
@pytest.mark.parametrize("length", [3, 33])
def test_own_cells_sum_up_until_they_are_reset(cell, length):
    inputs = np.ones([2, length, 1], np.float32)
    reset = np.zeros([2, length], bool)
    reset[1, 2] = True
    outputs, state = DynamicUnroll(cell())(inputs, reset_mask=tf.constant(reset))
    np.testing.assert_array_equal(outputs[0, :, 0], np.arange(length) + 1)
    np.testing.assert_array_equal(outputs[1, :3, 0], [1, 2, 1])
    np.testing.assert_array_equal(state, outputs[:, -1])


def test_a_reset_goes_to_the_cells_own_initial_state():
    layer = DynamicUnroll(FromOne())
    outputs, _ = layer(
        np.full([1, 3, 1], 10.0, np.float32),
        initial_state=tf.constant([[5.0]]),
        reset_mask=tf.constant([[False, True, False]]),
    )
    np.testing.assert_array_equal(outputs[0, :, 0], [15, 11, 21])


def test_a_step_without_time_is_one_step(data):
    inputs, _, h, c = data
    layer = DynamicUnroll(keras.layers.LSTMCell(UNITS))
    long, long_state = layer(inputs[:, :1], initial_state=[h, c])
    for mask in (None, tf.zeros([BATCH], tf.bool), tf.zeros([BATCH, 1], tf.bool)):
        output, state = layer(inputs[:, 0], initial_state=[h, c], reset_mask=mask)
        np.testing.assert_array_equal(output, long[:, 0])
        np.testing.assert_array_equal(state, long_state)


@pytest.mark.parametrize("length", [4, 40])
@pytest.mark.parametrize("stacked", [False, True])
def test_dropout_keeps_one_mask_for_all_steps_and_draws_it_anew(length, stacked):
    def cell():
        return keras.layers.SimpleRNNCell(
            16, kernel_initializer="identity", use_bias=False, dropout=0.5, seed=3
        )

    layer = DynamicUnroll(
        keras.layers.StackedRNNCells([cell(), cell()]) if stacked else cell()
    )
    layer.build((1, length, 16))
    for v in layer.trainable_variables:
        if "recurrent" in v.name:
            v.assign(tf.zeros_like(v))
    ones = tf.ones([1, length, 16])
    run = tf.function(lambda: layer(ones, training=True)[0], autograph=False)
    first, second = run().numpy(), run().numpy()
    for outputs in (first, second):
        np.testing.assert_array_equal(outputs, np.repeat(outputs[:, :1], length, 1))
        assert 0 < np.count_nonzero(outputs[0, 0]) < 16
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(layer(ones)[0][0, 0] != 0, True)


def test_config_round_trip():
    layer = DynamicUnroll(keras.layers.LSTMCell(3), parallel_iterations=10)
    clone = DynamicUnroll.from_config(layer.get_config())
    assert clone.get_config() == layer.get_config()
    assert clone.cell.units == 3
    assert clone.parallel_iterations == 10


def test_output_shapes():
    layer = DynamicUnroll(keras.layers.LSTMCell(3))
    assert layer.compute_output_shape((5, 7, 2)) == ((5, 7, 3), [(5, 3), (5, 3)])
    assert layer.compute_output_shape((5, 2)) == ((5, 3), [(5, 3), (5, 3)])


def test_variables_are_those_of_the_cell():
    layer = DynamicUnroll(keras.layers.LSTMCell(3))
    layer(tf.zeros([1, 2, FEATURES]))
    assert [v.path for v in layer.trainable_variables] == [
        v.path for v in layer.cell.trainable_variables
    ]


@processors.multiplies_in_half_precision
def test_the_state_is_float16_in_a_float16_cell():
    layer = DynamicUnroll(keras.layers.LSTMCell(3, dtype="float16"))
    outputs, state = layer(tf.zeros([2, 40, FEATURES], tf.float16))
    assert {outputs.dtype, state[0].dtype, state[1].dtype} == {tf.float16}


def test_what_is_no_cell_is_refused():
    with pytest.raises(TypeError, match=r"cell lacks get_initial_state.*LSTMCell"):
        DynamicUnroll(keras.layers.Dense(3))


def test_different_batch_sizes_are_refused():
    with pytest.raises(ValueError, match=r"batch_size is not the same.*\[1, 2\]"):
        DynamicUnroll(Sum()).call((tf.zeros([1, 3, 1]), tf.zeros([2, 3, 1])))
