import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import utils
from tfrl.networks.construction import seeding


@pytest.mark.parametrize(
    ("shape", "batch_dims", "flat"),
    [
        ([5, 3], 0, [1, 5, 3]),
        ([5, 3], 1, [5, 3]),
        ([5, 3], 2, [15]),
        ([5, 3, 2, 4], 2, [15, 2, 4]),
    ],
)
def test_batch_squash_round_trip(shape, batch_dims, flat):
    squash = utils.BatchSquash(batch_dims)
    tensor = tf.reshape(tf.range(np.prod(shape)), shape)
    flattened = squash.flatten(tensor)
    assert flattened.shape == flat
    np.testing.assert_array_equal(squash.unflatten(flattened), tensor)


def test_batch_squash_of_one_dimension_is_the_tensor_itself():
    squash = utils.BatchSquash(1)
    tensor = tf.zeros([2, 3])
    assert squash.flatten(tensor) is tensor
    assert squash.unflatten(tensor) is tensor


@pytest.mark.parametrize(
    "shape", [[None, 3, 2], [2, None, 2], [None, None, 2], [None, None, None]]
)
def test_batch_squash_of_unknown_shapes(shape):
    @tf.function(input_signature=[tf.TensorSpec(shape)])
    def round_trip(x):
        squash = utils.BatchSquash(2)
        flat = squash.flatten(x)
        return flat, squash.unflatten(flat[:, :1])

    x = tf.reshape(tf.range(12.0), [2, 3, 2])
    flat, back = round_trip(x)
    np.testing.assert_array_equal(flat, tf.reshape(x, [6, 2]))
    np.testing.assert_array_equal(back, x[..., :1])


@pytest.mark.parametrize("shape", [[2, 3, 4], [None, 3, None]])
def test_batch_squash_of_sparse_tensors(shape):
    @tf.function(input_signature=[tf.SparseTensorSpec(shape)])
    def round_trip(x):
        squash = utils.BatchSquash(2)
        flat = squash.flatten(x)
        return flat, squash.unflatten(flat)

    dense = np.zeros([2, 3, 4], np.float32)
    dense[1, 2, 3] = 5.0
    flat, back = round_trip(tf.sparse.from_dense(dense))
    np.testing.assert_array_equal(tf.sparse.to_dense(flat), dense.reshape(6, 4))
    np.testing.assert_array_equal(tf.sparse.to_dense(back), dense)


def test_batch_squash_errors():
    with pytest.raises(ValueError, match="batch_dims is -1, expected 0 or more"):
        utils.BatchSquash(-1)
    with pytest.raises(ValueError, match="call flatten on the inputs first"):
        utils.BatchSquash(2).unflatten(tf.zeros([2]))


def test_check_single_floating_network_output():
    good = tf.TensorSpec([3], tf.float32)
    utils.check_single_floating_network_output(good, (3,), "q_network")
    message = r"Expected q_network to emit a floating point tensor with inner dims \(4"
    for spec in (good, tf.TensorSpec([4], tf.int32), [good]):
        with pytest.raises(ValueError, match=message):
            utils.check_single_floating_network_output(spec, (4,), "q_network")


def test_mlp_layers():
    layers = utils.mlp_layers(
        conv_layer_params=[(2, 3, 1)],
        fc_layer_params=[4, 5],
        dropout_layer_params=[None, 0.1],
        weight_decay_params=[None, 0.2],
        name="mlp",
        seed=1,
    )
    kinds = [type(layer).__name__ for layer in layers]
    dropout = "PermanentVariableRateDropout"
    assert kinds == ["Conv2D", "Flatten", "Dense", "Dense", dropout]
    names = [layers[i].name for i in (0, 2, 3)]
    assert names == ["mlp_conv2d_0", "mlp_dense0", "mlp_dense1"]
    np.testing.assert_allclose(layers[3].kernel_regularizer.l2, 0.2, rtol=1e-6)


def test_seed_stream_repeats_and_does_not_collide():
    first, same = seeding.SeedStream(1), seeding.SeedStream(1)
    drawn = [first() for _ in range(100)]
    assert drawn == [same() for _ in range(100)]
    assert len(set(drawn)) == 100
    assert all(0 <= seed < 2**31 for seed in drawn)


def test_seed_stream_follows_the_global_seed():
    drawn = []
    for _ in range(2):
        tf.random.set_seed(3)
        drawn.append(seeding.SeedStream()())
    assert drawn[0] == drawn[1]


def test_clone_initializer_seeds_the_copy():
    initializer = keras.initializers.VarianceScaling(scale=3.0)
    first, same, other = (utils.clone_initializer(initializer, s) for s in (1, 1, 2))
    assert first.scale == 3.0
    np.testing.assert_array_equal(first((2, 2)), same((2, 2)))
    assert not np.array_equal(first((2, 2)), other((2, 2)))
    assert utils.clone_initializer(np.zeros) is np.zeros
    assert utils.clone_initializer("zeros").__class__ is keras.initializers.Zeros


def test_clone_initializer_keeps_the_say_of_a_given_seed():
    def draw(own, seed):
        initializer = keras.initializers.RandomUniform(seed=own)
        return utils.clone_initializer(initializer, seed)((2, 2)).numpy()

    np.testing.assert_array_equal(draw(1, 5), draw(1, 5))
    assert not np.array_equal(draw(1, 5), draw(2, 5))
    assert not np.array_equal(draw(1, 5), draw(1, 6))


def test_compat_v1_initializers_are_passed_on():
    initializer = tf.compat.v1.initializers.variance_scaling(seed=1)
    layers = utils.mlp_layers(fc_layer_params=[4], kernel_initializer=initializer)
    assert layers[1](tf.ones([2, 3])).shape == (2, 4)


def test_sizes_may_be_integers_of_numpy():
    layers = utils.mlp_layers(
        conv_layer_params=[(np.int64(2), (np.int32(3), 3), np.int64(1))],
        fc_layer_params=np.array([4, 5]),
        dropout_layer_params=[0.1, None],
    )
    x = tf.ones([2, 6, 6, 1])
    for layer in layers:
        x = layer(x)
    assert x.shape == (2, 5)
