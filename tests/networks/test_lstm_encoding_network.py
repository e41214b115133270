import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.keras_layers import DynamicUnroll
from tfrl.networks import LSTMEncodingNetwork

OBSERVATION = tf.TensorSpec([2], tf.float32)
FIRST, MID, LAST = 0, 1, 2
RETURNS = {"return_sequences": True, "return_state": True}


def make(**kwargs):
    sizes = {"input_fc_layer_params": (4,), "output_fc_layer_params": (3,)}
    sizes.update(activation_fn="tanh", seed=1)
    if "rnn_construction_fn" not in kwargs:
        sizes["lstm_size"] = (5,)
    return LSTMEncodingNetwork(OBSERVATION, **{**sizes, **kwargs})


def sequence(batch=3, time=7, seed=0):
    """Observations, and step types with episodes that end inside the sequence."""
    rng = np.random.default_rng(seed)
    observations = rng.normal(size=[batch, time, 2]).astype(np.float32)
    step_types = np.full([batch, time], MID, np.int32)
    step_types[0, 2:4] = [LAST, FIRST]
    step_types[1, 0] = FIRST
    step_types[2, 4:6] = [LAST, FIRST]
    return tf.constant(observations), tf.constant(step_types)


def step_by_step(net, observations, step_types, state):
    outputs = []
    for t in range(observations.shape[1]):
        output, state = net(observations[:, t], step_types[:, t], state)
        outputs.append(output)
    return tf.stack(outputs, axis=1), state


CELLS = {
    "lstm": {},
    "stack": {"lstm_size": (5, 4)},
    "keras_lstm": {
        "rnn_construction_fn": keras.layers.LSTM,
        "rnn_construction_kwargs": {"units": 5, **RETURNS},
    },
    "gru_cell": {"rnn_construction_fn": lambda: keras.layers.GRUCell(5)},
    "unroll": {
        "rnn_construction_fn": lambda: DynamicUnroll(keras.layers.SimpleRNNCell(5))
    },
}


@pytest.mark.parametrize("kind", list(CELLS))
def test_a_sequence_at_once_equals_steps_with_the_state_reset_at_first(kind):
    net = make(**CELLS[kind])
    net.create_variables()
    observations, step_types = sequence()
    start = tf.nest.map_structure(
        lambda spec: tf.random.stateless_normal([3, *spec.shape], [1, 2]),
        net.state_spec,
    )
    together, last = net(observations, step_types, start)
    expected, expected_last = step_by_step(net, observations, step_types, start)
    np.testing.assert_allclose(together, expected, atol=1e-6)
    tf.nest.map_structure(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), last, expected_last
    )
    # The same by hand: where an episode begins, the initial state is given.
    state, outputs = start, []
    for t in range(7):
        first = step_types[:, t] == FIRST
        state = tf.nest.map_structure(
            lambda s, first=first: tf.where(first[:, None], 0.0, s), state
        )
        output, state = net(observations[:, t], None, state)
        outputs.append(output)
    np.testing.assert_allclose(together, tf.stack(outputs, 1), atol=1e-6)


def test_what_came_before_first_has_no_effect_and_what_came_after_has():
    net = make()
    observations, step_types = sequence()
    output, _ = net(observations, step_types)
    changed = tf.tensor_scatter_nd_add(observations, [[0, 1], [2, 0]], [[1, 1], [1, 1]])
    difference = np.abs(net(changed, step_types)[0] - output).max(axis=-1)
    np.testing.assert_array_equal(
        difference > 0,
        [
            [False, True, True, False, False, False, False],
            [False] * 7,
            [True, True, True, True, True, False, False],
        ],
    )


def test_layers_are_applied_in_turn():
    net = make()
    observations, _ = sequence()
    output, _ = net(observations)
    encoder, lstm, dense = (
        net._input_encoder,
        net._lstm_network,
        net._output_encoder[0],
    )
    hidden, _ = encoder(observations)
    keras_lstm = keras.layers.LSTM(5, return_sequences=True)
    keras_lstm.build((3, 7, 4))
    for ours, theirs in zip(
        keras_lstm.trainable_variables, lstm.trainable_variables, strict=True
    ):
        ours.assign(theirs)
    np.testing.assert_allclose(output, dense(keras_lstm(hidden)), atol=1e-6)


def test_state_spec_has_the_structure_of_the_cells_state():
    assert [s.shape for s in make().state_spec] == [[5], [5]]
    specs = make(lstm_size=(5, 4)).state_spec
    assert tf.nest.map_structure(lambda s: s.shape[0], specs) == [[5, 5], [4, 4]]
    assert make(**CELLS["gru_cell"]).state_spec.shape == [5]


def test_nested_observations_are_preprocessed_and_combined():
    spec = {"a": OBSERVATION, "b": tf.TensorSpec([4, 4, 1], tf.uint8)}
    net = LSTMEncodingNetwork(
        spec,
        preprocessing_layers={
            "a": keras.layers.Dense(3),
            "b": keras.Sequential(
                [keras.layers.Rescaling(1 / 255.0), keras.layers.Flatten()]
            ),
        },
        preprocessing_combiner=keras.layers.Concatenate(),
        lstm_size=(5,),
        output_fc_layer_params=None,
    )
    assert net.create_variables() == tf.TensorSpec([5], tf.float32)
    observation = {"a": tf.ones([3, 6, 2]), "b": tf.ones([3, 6, 4, 4, 1], tf.uint8)}
    output, state = net(observation, tf.ones([3, 6], tf.int32))
    assert output.shape == [3, 6, 5]
    assert [s.shape for s in state] == [[3, 5], [3, 5]]


def test_the_seed_decides_the_weights():
    def weights(seed):
        net = make(seed=seed)
        net.create_variables()
        return np.concatenate([np.ravel(v) for v in net.trainable_variables])

    np.testing.assert_array_equal(weights(1), weights(1))
    assert not np.array_equal(weights(1), weights(2))


def test_a_copy_has_weights_of_its_own():
    net = make(**CELLS["gru_cell"])
    copied = net.copy()
    net.create_variables()
    copied.create_variables()
    assert not {id(v) for v in net.variables} & {id(v) for v in copied.variables}
    assert copied.state_spec == net.state_spec


def test_input_dropout_is_on_in_training_alone():
    net = make(input_dropout_layer_params=[0.5])
    observations, step_types = sequence()
    run = [net(observations, step_types, training=t)[0] for t in (False, False, True)]
    np.testing.assert_array_equal(run[0], run[1])
    assert not np.allclose(run[0], run[2])


def test_sequences_of_every_length_share_one_trace():
    net = make()
    net.create_variables()
    spec = tf.TensorSpec([None, None, 2]), tf.TensorSpec([None, None], tf.int32)
    traced = tf.function(lambda *x: net(*x)[0], input_signature=spec, autograph=False)
    observations, step_types = sequence()
    for length in (1, 3, 7):
        expected, _ = net(observations[:, :length], step_types[:, :length])
        got = traced(observations[:, :length], step_types[:, :length])
        np.testing.assert_allclose(got, expected, atol=1e-6)
    assert traced.experimental_get_tracing_count() == 1


def test_a_checkpoint_holds_the_cells_weights(tmp_path):
    net, other = make(seed=1), make(seed=2)
    net.create_variables()
    other.create_variables()
    path = tf.train.Checkpoint(net=net).save(tmp_path / "c")
    tf.train.Checkpoint(net=other).restore(path).assert_consumed()
    observations, step_types = sequence()
    np.testing.assert_array_equal(
        net(observations, step_types)[0], other(observations, step_types)[0]
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"lstm_size": None}, "Need to provide either custom rnn_construction_fn or"),
        (
            {"lstm_size": (3,), "rnn_construction_fn": keras.layers.GRUCell},
            "Cannot provide both custom rnn_construction_fn and lstm_size",
        ),
    ],
)
def test_exactly_one_source_of_the_recurrent_layer(arguments, text):
    with pytest.raises(ValueError, match=text):
        make(**arguments)


def test_other_numbers_of_outer_dimensions_are_refused():
    with pytest.raises(ValueError, match=r"0 outer dimensions.*batch or batch x time"):
        make().call(tf.zeros([2]))
