import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import nest_map, network, sequential

SPEC = {"image": tf.TensorSpec([2, 2], tf.float32), "speed": tf.TensorSpec([3])}
X = {"image": np.ones([5, 2, 2], np.float32), "speed": np.ones([5, 3], np.float32)}


class Count(network.Network):
    """Adds the inputs up, in its state."""

    def __init__(self, spec=None, name=None):
        super().__init__(spec, state_spec={"sum": tf.TensorSpec([1])}, name=name)

    def call(self, observation, step_type=None, network_state=(), training=False):
        total = network_state["sum"] + tf.reduce_sum(observation, -1, keepdims=True)
        return total, {"sum": total}


def flatten():
    return sequential.Sequential([keras.layers.Flatten(), keras.layers.Dense(4)])


def test_each_layer_takes_its_part():
    double, negate = keras.layers.Rescaling(2.0), keras.layers.Rescaling(-1.0)
    net = nest_map.NestMap({"image": double, "speed": negate}, SPEC)
    outputs, state = net(X)
    np.testing.assert_array_equal(outputs["image"], 2 * X["image"])
    np.testing.assert_array_equal(outputs["speed"], -X["speed"])
    assert not tf.nest.flatten(state)


def test_layers_may_take_sub_nests_of_a_dict_in_a_tuple():
    spec = (tf.TensorSpec([1]), {"a": tf.TensorSpec([2]), "b": tf.TensorSpec([2])})
    net = nest_map.NestMap(
        (
            keras.layers.Rescaling(3.0),
            sequential.Sequential([nest_map.NestFlatten(), keras.layers.Add()]),
        ),
        spec,
    )
    inputs = (tf.ones([5, 1]), {"a": tf.ones([5, 2]), "b": 2 * tf.ones([5, 2])})
    outputs, _ = net(inputs)
    assert isinstance(outputs, tuple)
    np.testing.assert_array_equal(outputs[0], np.full([5, 1], 3.0))
    np.testing.assert_array_equal(outputs[1], np.full([5, 2], 3.0))


def test_flattening_keeps_the_order_of_nests():
    flat = nest_map.NestFlatten()({"b": tf.constant([2]), "a": (tf.constant([1]),)})
    assert [int(x[0]) for x in flat] == [1, 2]
    assert flat[0].dtype == tf.int32


def test_flattened_outputs_can_be_concatenated_in_a_sequential():
    net = sequential.Sequential(
        [
            nest_map.NestMap({"image": flatten(), "speed": keras.layers.Dense(2)}),
            nest_map.NestFlatten(),
            keras.layers.Concatenate(),
        ],
        input_spec=SPEC,
    )
    assert net.create_variables() == tf.TensorSpec([6], tf.float32)
    assert len(net.trainable_variables) == 4


def test_states_have_the_structure_of_the_layers():
    net = nest_map.NestMap({"image": flatten(), "speed": Count()}, SPEC)
    assert net.state_spec == {"image": (), "speed": {"sum": tf.TensorSpec([1])}}
    state = net.get_initial_state(5)
    for total in (3.0, 6.0):
        outputs, state = net(X, network_state=state)
        np.testing.assert_array_equal(outputs["speed"], np.full([5, 1], total))
    np.testing.assert_array_equal(state["speed"]["sum"], np.full([5, 1], 6.0))
    tf.nest.assert_same_structure(state, net.state_spec)


def test_spec_is_put_together_from_the_layers():
    net = nest_map.NestMap({"a": Count(SPEC["speed"]), "b": Count(SPEC["speed"])})
    assert net.input_tensor_spec == {"a": SPEC["speed"], "b": SPEC["speed"]}


def test_copy_shares_no_weights_and_a_seed_decides_them():
    def make():
        layers = {"image": keras.layers.Dense(3), "speed": keras.layers.Dense(2)}
        return nest_map.NestMap(layers, SPEC, seed=3)

    first, second = make(), make()
    copied = first.copy(name="copy")
    for net in (first, second, copied):
        net.create_variables()
    assert copied.name == "copy"
    assert not {id(v) for v in first.variables} & {id(v) for v in copied.variables}
    for a, b in zip(first.variables, second.variables, strict=True):
        np.testing.assert_array_equal(a, b)


def test_checkpoint_holds_the_layers(tmp_path):
    net = nest_map.NestMap({"image": flatten(), "speed": keras.layers.Dense(2)}, SPEC)
    net.create_variables()
    values = [v.numpy() for v in net.variables]
    path = tf.train.Checkpoint(net=net).save(tmp_path / "c")
    for v in net.variables:
        v.assign(tf.zeros_like(v))
    tf.train.Checkpoint(net=net).restore(path).assert_consumed()
    for v, value in zip(net.variables, values, strict=True):
        np.testing.assert_array_equal(v, value)


def test_sequences_pass():
    net = nest_map.NestMap(
        {"image": keras.layers.Dense(4), "speed": keras.layers.Dense(2)}, SPEC
    )
    x = {"image": tf.ones([5, 7, 2, 2]), "speed": tf.ones([5, 7, 3])}
    outputs, _ = net(x)
    assert outputs["speed"].shape == (5, 7, 2)


def test_wrong_layers():
    with pytest.raises(TypeError, match=r"nested_layers\[a/0\]: got .*expected all"):
        nest_map.NestMap({"a": [tf.nn.relu]})
    with pytest.raises(ValueError, match="empty nest"):
        nest_map.NestMap({})
    with pytest.raises(
        TypeError,
        match="`nested_layers` and `input_spec` do not have matching structures",
    ):
        nest_map.NestMap({"a": keras.layers.Dense(1)}, SPEC)


def test_wrong_inputs():
    net = nest_map.NestMap({"image": flatten(), "speed": keras.layers.Dense(2)})
    with pytest.raises(
        TypeError,
        match="`self.nested_layers` and `inputs` do not have matching structures: got "
        r"\('EagerTensor', 'EagerTensor'\), expected .* {'image': 'Sequential', ",
    ):
        net((tf.ones([1, 2, 2]), tf.ones([1, 3])))


def test_wrong_state():
    cell = keras.layers.LSTM(8, return_state=True, return_sequences=True)
    net = nest_map.NestMap(cell)
    assert net.state_spec == ((tf.TensorSpec([8]), tf.TensorSpec([8])),)
    with pytest.raises(ValueError, match=r"network_state: got .* expected the struct"):
        net(tf.ones([1, 2]), network_state=(tf.ones([1, 1]), ()))
