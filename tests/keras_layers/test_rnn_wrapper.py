import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.keras_layers import RNNWrapper

RETURNS = {"return_sequences": True, "return_state": True}
INPUTS = np.random.default_rng(0).normal(size=[3, 5, 2]).astype(np.float32)


def stacked():
    cells = [keras.layers.LSTMCell(3), keras.layers.GRUCell(2)]
    return keras.layers.RNN(cells, **RETURNS)


LAYERS = {
    "lstm": (lambda: keras.layers.LSTM(3, **RETURNS), [0, 0]),
    "gru": (lambda: keras.layers.GRU(3, **RETURNS), 0),
    "stacked": (stacked, [[0, 0], 0]),
}


@pytest.fixture(params=list(LAYERS))
def layer_and_state(request):
    make, state = LAYERS[request.param]
    return RNNWrapper(make()), state


def test_outputs_are_the_layers_and_the_state_has_the_cells_structure(layer_and_state):
    wrapper, structure = layer_and_state
    outputs, state = wrapper(INPUTS)
    expected, *expected_state = wrapper.wrapped_layer(INPUTS)
    np.testing.assert_array_equal(outputs, expected)
    tf.nest.assert_same_structure(state, structure)
    for ours, theirs in zip(
        tf.nest.flatten(state), tf.nest.flatten(expected_state), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_resets_equal_two_sequences(layer_and_state):
    wrapper, _ = layer_and_state
    mask = np.zeros([3, 5], bool)
    mask[:, 3] = True
    outputs, state = wrapper(INPUTS, reset_mask=tf.constant(mask))
    first, _ = wrapper(INPUTS[:, :3])
    second, last_state = wrapper(INPUTS[:, 3:])
    np.testing.assert_allclose(outputs, tf.concat([first, second], 1), atol=1e-6)
    tf.nest.map_structure(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), state, last_state
    )


def test_a_step_without_time_carries_the_state(layer_and_state):
    wrapper, _ = layer_and_state
    expected, _ = wrapper(INPUTS)
    state, outputs = wrapper.get_initial_state(batch_size=3), []
    for t in range(5):
        output, state = wrapper(INPUTS[:, t], initial_state=state)
        outputs.append(output)
    np.testing.assert_allclose(tf.stack(outputs, 1), expected, atol=1e-6)


def test_config_round_trip(layer_and_state):
    wrapper, _ = layer_and_state
    clone = RNNWrapper.from_config(wrapper.get_config())
    assert clone.get_config() == wrapper.get_config()
    assert clone.state_size == wrapper.state_size


def test_variables_count_once(layer_and_state):
    wrapper, _ = layer_and_state
    wrapper(INPUTS)
    ids = [id(v) for v in wrapper.variables]
    assert len(set(ids)) == len(ids) == len(wrapper.wrapped_layer.variables)


def test_dense_layers_are_refused():
    with pytest.raises(TypeError, match=r"not a subclass of keras\.layers\.RNN"):
        RNNWrapper(keras.layers.Dense(2))


@pytest.mark.parametrize(
    "option",
    [
        {"return_state": False},
        {"return_sequences": False},
        {"go_backwards": True},
        {"stateful": True},
    ],
)
def test_layers_that_keep_their_state_are_refused(option):
    ((name, value),) = option.items()
    with pytest.raises(NotImplementedError, match=f"{name}=={value}.*{name}="):
        RNNWrapper(keras.layers.LSTM(2, **{**RETURNS, **option}))


def test_mask_beside_resets_is_refused():
    wrapper = RNNWrapper(keras.layers.LSTM(2, **RETURNS))
    mask = tf.ones([3, 5], tf.bool)
    with pytest.raises(ValueError, match="both mask and reset_mask"):
        wrapper(INPUTS, mask=mask, reset_mask=mask)
