import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.acme.tf import utils as tf2_utils
from tfrl.networks import sequential
from tfrl.networks.heads import distributional
from tfrl.specs import array_spec

NEST = {"b": tf.constant([[[1, 2], [3, 4]]]), "a": (tf.constant([5]),)}


def test_batch_dimensions_come_and_go():
    batched = tf2_utils.add_batch_dim(NEST)
    assert batched["b"].shape == [1, 1, 2, 2]
    tf.nest.map_structure(
        np.testing.assert_array_equal, tf2_utils.squeeze_batch_dim(batched), NEST
    )
    assert tf2_utils.add_batch_dim(np.float32(3)).shape == [1]


def test_leaves_are_flattened_and_joined_in_order_of_their_keys():
    np.testing.assert_array_equal(tf2_utils.batch_concat(NEST), [[5, 1, 2, 3, 4]])
    np.testing.assert_array_equal(
        tf2_utils.batch_concat([np.zeros([2, 0]), np.ones([2, 1, 2])]), np.ones([2, 2])
    )


def test_batch_and_time_are_swapped():
    sequence = tf2_utils.batch_to_sequence(tf.reshape(tf.range(12), [2, 3, 2]))
    assert sequence.shape == [3, 2, 2]
    np.testing.assert_array_equal(sequence[2, 1], [10, 11])


def test_tiles_are_copies_along_a_first_axis():
    tiled = tf2_utils.tile_nested(NEST, 3)
    np.testing.assert_array_equal(tiled["a"][0], [[5]] * 3)
    np.testing.assert_array_equal(tf2_utils.tile_tensor([1, 2], 2), [[1, 2], [1, 2]])


def test_zeros_have_shapes_and_dtypes_of_specs():
    zeros = tf2_utils.zeros_like(
        [array_spec.ArraySpec([2], np.uint8), tf.TensorSpec([3])]
    )
    np.testing.assert_array_equal(zeros[0], [0, 0])
    assert [z.dtype for z in zeros] == [tf.uint8, tf.float32]


def test_tensors_become_arrays():
    arrays = tf2_utils.to_numpy(NEST)
    assert type(arrays["b"]) is np.ndarray
    np.testing.assert_array_equal(
        tf2_utils.to_numpy_squeeze(NEST)["b"], [[1, 2], [3, 4]]
    )
    with pytest.raises(ValueError, match="size not equal to one"):
        tf2_utils.to_numpy_squeeze(tf.zeros([2]))


def test_sequences_of_nests_are_stacked():
    stacked = tf2_utils.stack_sequence_fields([{"x": 1, "y": [2]}, {"x": 3, "y": [4]}])
    np.testing.assert_array_equal(stacked["x"], [1, 3])
    np.testing.assert_array_equal(stacked["y"][0], [2, 4])


def test_variables_of_networks_and_layers_are_made():
    observation = array_spec.ArraySpec([3], np.float32)
    for module in (
        keras.layers.Dense(2),
        sequential.Sequential([keras.layers.Dense(2)]),
    ):
        spec = tf2_utils.create_variables(module, [observation])
        assert spec == tf.TensorSpec([2], tf.float32)
        assert len(module.variables) == 2


def test_critics_take_two_specs_and_distributions_have_none():
    critic = sequential.Sequential(
        [tf2_utils.batch_concat, distributional.DiscreteValuedHead(0.0, 1.0, 3)]
    )
    spec = tf2_utils.create_variables(critic, [tf.TensorSpec([4]), tf.TensorSpec([2])])
    assert spec is None
    assert critic.variables[0].shape == (6, 3)
    head = distributional.MultivariateNormalDiagHead(2)
    assert tf2_utils.create_variables(head, [tf.TensorSpec([4])]) is None
    assert len(head.variables) == 4


class Linear(tf.Module):
    """Makes its variable when it is first called, as Sonnet's modules do."""

    w = None

    def __call__(self, inputs):
        if self.w is None:
            self.w = tf.Variable(tf.ones([inputs.shape[-1], 2]))
        return inputs @ self.w


class Core(Linear):
    def initial_state(self, batch_size):
        return (tf.zeros([batch_size, 2]),)

    def __call__(self, inputs, state):
        state = (super().__call__(inputs) + state[0],)
        return state[0], state


def test_variables_of_modules_are_made():
    linear, core, two = Linear(), Core(), tf.TensorSpec([2])
    assert tf2_utils.create_variables(linear, [tf.TensorSpec([3])]) == two
    assert linear.w.shape == [3, 2]
    output_and_state = tf2_utils.create_variables(core, [tf.TensorSpec([3])])
    assert output_and_state == (two, (two,))


def test_a_layer_of_keras_in_a_module_that_would_ignore_it_is_refused():
    module = Linear()
    module.head = keras.layers.Dense(2, name="head")
    with pytest.raises(ValueError, match=r"got Linear, .* 'head' .*write tfrl\.acme"):
        tf2_utils.create_variables(module, [tf.TensorSpec([3])])


def test_a_function_is_a_module_without_variables():
    def joined(first, second):
        return tf.concat([first, second], axis=-1), first

    module = tf2_utils.to_sonnet_module(joined)
    specs = [tf.TensorSpec([2]), tf.TensorSpec([3])]
    assert tf2_utils.create_variables(module, specs) == (tf.TensorSpec([5]), specs[0])
    assert module.variables == ()
    linear, dense = Linear(), keras.layers.Dense(2)
    assert tf2_utils.to_sonnet_module(linear) is linear
    assert tf2_utils.to_sonnet_module(dense) is dense
