import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import network, q_network, sequential
from tfrl.specs import tensor_spec

OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 2)


class Scale(network.Network):
    """Multiplies by a constant and a learned number; keeps count in its state."""

    def __init__(self, input_tensor_spec=None, factor=2.0, name=None, *, seed=None):
        state_spec = {"count": tf.TensorSpec([], tf.int32)}
        super().__init__(input_tensor_spec, state_spec=state_spec, name=name)
        self.factor = factor
        self.seed = seed
        self.dense = keras.layers.Dense(1)

    def call(self, observation, step_type=None, network_state=(), training=False):
        if not network_state:
            network_state = self.get_initial_state(tf.shape(observation)[0])
        count = network_state["count"] + 1
        return self.dense(observation) * self.factor, {"count": count}


class InputOnly(network.Network):
    """Takes nothing but its input."""

    def call(self, inputs):
        return inputs["a"] + 1.0, ()


def make_q_network(**kwargs):
    return q_network.QNetwork(OBSERVATION, ACTION, fc_layer_params=(4,), **kwargs)


def test_arguments_can_be_given_by_position():
    net = Scale(OBSERVATION)
    output, state = net(
        tf.ones([3, 2]), tf.zeros([3], tf.int32), net.get_initial_state(3), True
    )
    assert output.shape == (3, 1)
    np.testing.assert_array_equal(state["count"], [1, 1, 1])


def test_step_type_and_state_are_dropped_where_call_does_not_take_them():
    output, state = InputOnly()(
        {"a": tf.zeros([1])}, step_type=tf.zeros([1], tf.int32), network_state=()
    )
    np.testing.assert_array_equal(output, [1.0])
    assert state == ()


def test_too_many_positional_arguments_are_refused():
    with pytest.raises(TypeError, match="got 2 positional arguments, expected at most"):
        InputOnly()({"a": tf.zeros([1])}, 1)


def test_float64_tensors_are_not_cast_but_refused():
    with pytest.raises(ValueError, match=r"got dtype float64, expected float32"):
        make_q_network(name="Net")(tf.zeros([1, 2], tf.float64))


class Echo(network.Network):
    """Returns its input."""

    def call(self, inputs):
        return inputs, ()


@pytest.mark.parametrize(
    "given",
    [
        np.array([[1.0, 2.0]]),
        np.array([[1, 2]]),
        [[1.0, 2.0]],
        [[1, 2]],
        [np.array([1.0, 2.0])],
    ],
    ids=["float64", "int64", "list", "list of ints", "list of arrays"],
)
def test_arrays_and_lists_get_the_dtype_of_the_spec(given):
    output, _ = Echo(OBSERVATION)(given)
    assert (output.dtype, output.shape) == (tf.float32, (1, 2))
    np.testing.assert_array_equal(output, [[1.0, 2.0]])


def test_arrays_and_lists_in_a_nest_get_the_dtypes_of_their_specs():
    specs = {
        "a": tf.TensorSpec([2], tf.float32),
        "b": [tf.TensorSpec([], tf.uint8), tf.TensorSpec([], tf.float32)],
    }
    given = {"a": [[1, 2]], "b": [[255], tf.ones([1])], "more": [[7]]}
    output, _ = Echo(specs)(given)
    tf.nest.assert_same_structure(output, specs)
    assert output["b"][1] is given["b"][1]
    assert output["b"][0].dtype == tf.uint8
    np.testing.assert_array_equal(output["a"], [[1.0, 2.0]])
    np.testing.assert_array_equal(output["b"][0], [255])


@pytest.mark.parametrize(
    ("given", "spec", "message"),
    [
        (
            [[1.0, 2.0]],
            tf.TensorSpec([2], tf.int32),
            "got dtype float64, expected int32",
        ),
        ([[True]], tf.TensorSpec([1], tf.float32), "got dtype bool"),
        ([["a"]], tf.TensorSpec([1], tf.float32), "got dtype str"),
        ([[256]], tf.TensorSpec([1], tf.uint8), "got dtype int64"),
        ([[-1]], tf.TensorSpec([1], tf.uint8), "got dtype int64"),
        ([[1.0]], OBSERVATION, r"got shape \(1, 1\), expected \(..., 2\)"),
        (1.0, OBSERVATION, r"got shape \(\), expected \(..., 2\)"),
        ([[1.0, 2.0], [1.0]], OBSERVATION, "expected the structure of"),
        ((1.0, 2.0), OBSERVATION, "expected the structure of"),
        ([tf.ones([2]), tf.ones([2])], OBSERVATION, "expected the structure of"),
    ],
)
def test_what_does_not_fit_a_spec_is_not_converted(given, spec, message):
    with pytest.raises(ValueError, match=f"Echo: inputs: .*{message}"):
        Echo(spec, name="Echo")(given)


def test_a_conversion_in_a_function_is_a_constant():
    net = Echo(OBSERVATION)
    output = tf.function(lambda: net([[1, 2]])[0])()
    np.testing.assert_array_equal(output, [[1.0, 2.0]])


def test_wrong_inner_shape_names_the_place_and_both_shapes():
    with pytest.raises(
        ValueError,
        match=r"Net: inputs: got shape \(1, 3\), expected \(..., 2\); cast",
    ):
        make_q_network(name="Net")(tf.zeros([1, 3]))


def test_error_in_a_nest_names_the_path():
    net = InputOnly({"a": tf.TensorSpec([], tf.float32)}, name="Net")
    with pytest.raises(ValueError, match="Net: inputs/a: got dtype int32"):
        net({"a": tf.zeros([1], tf.int32)})


def test_missing_key_is_an_error():
    net = InputOnly({"a": tf.TensorSpec([], tf.float32)}, name="Net")
    with pytest.raises(ValueError, match=r"Net: inputs: got .* expected the"):
        net({"b": tf.zeros([1])})


def test_extra_dictionary_keys_are_pruned():
    net = InputOnly({"a": tf.TensorSpec([], tf.float32)})
    output, _ = net({"a": tf.zeros([1]), "b": tf.zeros([1])})
    np.testing.assert_array_equal(output, [1.0])


def test_wrong_state_is_an_error():
    net = Scale(OBSERVATION, name="Net")
    with pytest.raises(ValueError, match="network_state/count: got dtype float32"):
        net(tf.zeros([1, 2]), network_state={"count": tf.zeros([1])})


def test_call_has_to_return_a_pair():
    class NoPair(network.Network):
        def call(self, inputs):
            return inputs

    with pytest.raises(ValueError, match=r"call returned .*expected a pair"):
        NoPair()(tf.zeros([1]))


def test_create_variables_returns_the_output_spec_again_and_again():
    net = make_q_network()
    spec = net.create_variables()
    assert spec == tf.TensorSpec([3], tf.float32)
    assert net.create_variables() is spec
    assert len(net.variables) == 4


def test_create_variables_takes_the_spec():
    net = Scale()
    assert net.create_variables(OBSERVATION) == tf.TensorSpec([1], tf.float32)
    assert net.input_tensor_spec == OBSERVATION


def test_create_variables_needs_a_spec():
    with pytest.raises(ValueError, match="got no input_tensor_spec, expected one"):
        Scale().create_variables()


def test_create_variables_leaves_the_random_stream_alone():
    tf.random.set_seed(1)
    expected = tf.random.uniform([2])
    net = make_q_network(seed=1)
    tf.random.set_seed(1)
    net.create_variables()
    np.testing.assert_array_equal(tf.random.uniform([2]), expected)


@pytest.mark.parametrize("name", ["variables", "trainable_variables"])
def test_variables_of_an_unbuilt_network_are_an_error(name):
    with pytest.raises(ValueError, match=r"has not been built.*create_variables"):
        getattr(make_q_network(), name)


def test_variables_are_made_inside_a_function_too():
    net = make_q_network()
    output = tf.function(lambda x: net(x)[0])(tf.ones([2, 2]))
    assert output.shape == (2, 3)
    np.testing.assert_allclose(output, net(tf.ones([2, 2]))[0], rtol=1e-6)


def test_tf_variables_made_in_build_count():
    class Own(network.Network):
        def build(self, input_shape):
            self.on = tf.Variable(tf.ones(input_shape[-1]))
            self.off = tf.Variable(3, trainable=False)

        def call(self, inputs):
            return inputs * self.on, ()

    net = Own(OBSERVATION)
    net.create_variables()
    assert [id(v) for v in net.variables] == [id(net.on), id(net.off)]
    assert [id(v) for v in net.trainable_variables] == [id(net.on)]
    assert [id(v) for v in net.non_trainable_variables] == [id(net.off)]


def test_copy_repeats_the_constructor_with_overrides():
    net = Scale(OBSERVATION, 5.0, name="First")
    copied = net.copy(name="Second")
    assert (copied.factor, copied.name) == (5.0, "Second")
    assert copied.input_tensor_spec == OBSERVATION
    assert copied.dense is not net.dense


def test_copy_does_not_share_weights():
    net = make_q_network()
    net.create_variables()
    copied = net.copy()
    copied.create_variables()
    assert not {id(v) for v in net.variables} & {id(v) for v in copied.variables}


def test_subclass_without_init_copies():
    class Plain(Scale):
        pass

    assert Plain(OBSERVATION, factor=7.0).copy().factor == 7.0


def test_subclass_with_keyword_arguments_copies():
    class Wrapping(Scale):
        def __init__(self, **kwargs):
            super().__init__(OBSERVATION, **kwargs)

    assert Wrapping(factor=7.0).copy(name="Other").factor == 7.0


def test_a_copy_with_an_argument_that_the_constructor_lacks_is_refused():
    class Nameless(Scale):
        def __init__(self, input_tensor_spec, units=1):
            super().__init__(input_tensor_spec)

    message = r"Nameless.copy: got name, expected .* are input_tensor_spec, units; let"
    with pytest.raises(TypeError, match=message):
        Nameless(OBSERVATION).copy(name="Target")
    assert isinstance(Nameless(OBSERVATION).copy(units=2), Nameless)


def test_star_args_in_init_are_refused_when_the_class_is_made():
    with pytest.raises(RuntimeError, match=r"accepts \*args"):

        class Bad(network.Network):
            def __init__(self, *args):
                super().__init__()


def test_same_seed_same_weights():
    nets = [make_q_network(seed=3), make_q_network(seed=3), make_q_network(seed=4)]
    for net in nets:
        net.create_variables()
    first, same, other = ([v.numpy() for v in net.variables] for net in nets)
    for a, b in zip(first, same, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[0], other[0])


def test_weights_follow_the_global_seed():
    weights = []
    for _ in range(2):
        tf.random.set_seed(11)
        net = make_q_network()
        net.create_variables()
        weights.append(net.variables[0].numpy())
    np.testing.assert_array_equal(*weights)


def test_networks_made_in_turn_differ_under_one_global_seed():
    tf.random.set_seed(11)
    first, second = make_q_network(), make_q_network()
    first.create_variables()
    second.create_variables()
    assert not np.array_equal(first.variables[0], second.variables[0])


def test_copies_of_a_seeded_network_start_apart_and_repeatably():
    def weights():
        net = make_q_network(seed=3)
        copies = [net, net.copy(), net.copy(), net.copy(seed=3)]
        for copied in copies:
            copied.create_variables()
        return [copied.variables[0].numpy() for copied in copies]

    first = weights()
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[1], first[2])
    np.testing.assert_array_equal(first[0], first[3])
    for a, b in zip(first, weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_initial_state_is_zeros_with_or_without_a_batch():
    net = Scale(OBSERVATION)
    assert net.get_initial_state()["count"].shape == ()
    np.testing.assert_array_equal(net.get_initial_state(2)["count"], [0, 0])
    assert make_q_network().get_initial_state(2) == ()


def test_layers_are_found_by_name_and_index():
    net = Scale(OBSERVATION)
    assert net.layers == [net.dense]
    assert net.get_layer(index=0) is net.dense
    assert net.get_layer(name=net.dense.name) is net.dense
    with pytest.raises(ValueError, match="no layer with name='x'"):
        net.get_layer(name="x")
    with pytest.raises(ValueError, match="expected exactly one of them"):
        net.get_layer()


def test_summary_lists_shapes_and_counts():
    net = make_q_network(name="Net")
    net.create_variables()
    lines = []
    net.summary(print_fn=lines.append)
    assert lines[0] == "QNetwork 'Net'"
    assert any("(2, 4)" in line for line in lines)
    assert "trainable parameters: 27" in lines


def test_training_reaches_layers_inside():
    net = sequential.Sequential([keras.layers.Dropout(0.5)], input_spec=OBSERVATION)
    outer = sequential.Sequential([net])
    ones = tf.ones([64, 2])
    np.testing.assert_array_equal(outer(ones)[0], ones)
    assert np.any(outer(ones, training=True)[0] == 0)


def test_keras_model_serves_as_network():
    model = keras.Sequential([keras.layers.Dense(3)])
    net = network.as_network(model, OBSERVATION)
    assert net.create_variables() == tf.TensorSpec([3], tf.float32)
    x = tf.ones([2, 2])
    np.testing.assert_array_equal(net(x)[0], model(x))
    assert network.as_network(net) is net
    assert network.get_state_spec(model) == ()


def test_create_variables_of_a_keras_layer():
    layer = keras.layers.Dense(3)
    spec = network.create_variables(layer, OBSERVATION)
    assert spec == tf.TensorSpec([3], tf.float32)
    assert layer.kernel.shape == (2, 3)


def test_state_spec_of_a_recurrent_cell_has_the_structure_of_its_state_size():
    spec = network.get_state_spec(keras.layers.LSTMCell(3))
    assert [s.shape for s in spec] == [[3], [3]]
    assert network.get_state_spec(keras.layers.GRUCell(2)).shape == [2]


def test_recurrent_keras_layer_has_to_be_wrapped():
    with pytest.raises(TypeError, match=r"layer LSTM, expected it wrapped.*RNNWrapper"):
        network.get_state_spec(keras.layers.LSTM(3))


def test_checkpoint_round_trip(tmp_path):
    net, other = make_q_network(seed=1), make_q_network(seed=2)
    net.create_variables()
    other.create_variables()
    path = tf.train.Checkpoint(net=net).save(tmp_path / "ckpt")
    tf.train.Checkpoint(net=other).restore(path).assert_consumed()
    for a, b in zip(net.variables, other.variables, strict=True):
        np.testing.assert_array_equal(a, b)


def test_saved_model_round_trip(tmp_path):
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.net = make_q_network(seed=1)
            self.net.create_variables()

        @tf.function(input_signature=[tf.TensorSpec([None, 2])])
        def values(self, x):
            return self.net(x)[0]

    module = Module()
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    x = tf.random.stateless_normal([5, 2], [1, 2])
    np.testing.assert_allclose(loaded.values(x), module.values(x), rtol=1e-6)


def test_checkpoint_holds_layers_inside_lists_of_keras_layers(tmp_path):
    class Stack(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.stack = {"a": [keras.layers.Dense(2), keras.layers.Dense(2)]}

        def call(self, x):
            for layer in self.stack["a"]:
                x = layer(x)
            return x

    nets = [sequential.Sequential([Stack()], OBSERVATION, seed=s) for s in (1, 2)]
    for net in nets:
        net.create_variables()
    path = tf.train.Checkpoint(net=nets[0]).save(tmp_path / "ckpt")
    tf.train.Checkpoint(net=nets[1]).restore(path).assert_consumed()
    for a, b in zip(nets[0].variables, nets[1].variables, strict=True):
        np.testing.assert_array_equal(a, b)


def test_restoring_builds_what_is_not_built(tmp_path):
    net, other = make_q_network(seed=1), make_q_network(seed=2)
    net.create_variables()
    path = tf.train.Checkpoint(net=net).save(tmp_path / "ckpt")
    tf.train.Checkpoint(net=other).restore(path).assert_consumed()
    for a, b in zip(net.variables, other.variables, strict=True):
        np.testing.assert_array_equal(a, b)


def test_observations_without_elements_are_refused():
    # TensorFlow's matrix product would end the process.
    empty = tf.TensorSpec([0], tf.float32)
    actions = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
    with pytest.raises(ValueError, match=r"^input_tensor_spec: got the shape \(0,\)"):
        q_network.QNetwork(empty, actions)
    unspecified = sequential.Sequential([keras.layers.Dense(2)])
    with pytest.raises(ValueError, match=r"^input_tensor_spec: got the shape \(0,\)"):
        unspecified.create_variables(empty)


class NewState(network.Network):
    """Returns the state that it was made with."""

    def __init__(self, state_spec, new_state):
        super().__init__(tf.TensorSpec([]), state_spec=state_spec, name="Net")
        self._set_untracked("new_state", new_state)

    def call(self, observation, network_state=()):
        return observation, self.new_state


def test_a_new_state_is_held_against_a_spec_without_tensors():
    with pytest.raises(ValueError, match=r"Net: new state: got .*expected the struct"):
        NewState(((), ()), tf.zeros([1])).create_variables()
    for state in ((), ((), ())):
        assert NewState(((), ()), state).create_variables() == tf.TensorSpec([])


@pytest.mark.parametrize(
    "wrap",
    [
        keras.layers.TimeDistributed,
        lambda dense: keras.layers.TimeDistributed(keras.layers.TimeDistributed(dense)),
        lambda dense: keras.Sequential([keras.layers.TimeDistributed(dense)]),
        lambda dense: sequential.Sequential([keras.layers.TimeDistributed(dense)]),
        lambda dense: sequential.Sequential([dense]),
    ],
)
def test_variables_of_layers_over_time_are_created(wrap):
    dense = keras.layers.Dense(3)
    spec = network.create_variables(wrap(dense), tf.TensorSpec([5], tf.float32))
    assert spec == tf.TensorSpec([3], tf.float32)
    assert dense.kernel.shape == (5, 3)
