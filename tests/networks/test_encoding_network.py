import collections

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import encoding_network

EncodingNetwork = encoding_network.EncodingNetwork
VECTOR = tf.TensorSpec([3], tf.float32)


def numpy_variables(net):
    return [v.numpy() for v in net.variables]


def test_without_layers_the_observation_is_flattened():
    net = EncodingNetwork(tf.TensorSpec([2, 3], tf.float32))
    x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    np.testing.assert_array_equal(net(x)[0], x.reshape(2, 6))


def test_scalar_observations_become_a_column():
    net = EncodingNetwork(tf.TensorSpec([], tf.float32))
    np.testing.assert_array_equal(net(tf.constant([1.0, 2.0]))[0], [[1.0], [2.0]])
    assert net(tf.zeros([4, 5]))[0].shape == (4, 5, 1)


def test_image_goes_through_convolution_and_dense_layer():
    net = EncodingNetwork(
        tf.TensorSpec([4, 4, 1], tf.uint8),
        conv_layer_params=[(2, 2, 2)],
        fc_layer_params=(3,),
        seed=1,
    )
    net.create_variables()
    kernel, conv_bias, weights, bias = numpy_variables(net)
    image = np.random.default_rng(0).integers(0, 255, [5, 4, 4, 1], np.uint8)
    patches = image.astype(np.float32).reshape(5, 2, 2, 2, 2, 1)
    conv = np.einsum("bhiwjc,ijco->bhwo", patches, kernel) + conv_bias
    expected = np.maximum(np.maximum(conv, 0).reshape(5, 8) @ weights + bias, 0)
    np.testing.assert_allclose(net(image)[0], expected, rtol=1e-4, atol=1e-3)


def test_layer_norm_stands_before_each_activation():
    net = EncodingNetwork(VECTOR, fc_layer_params=(5, 4), layer_norm=True, seed=1)
    x = np.random.default_rng(0).normal(size=[6, 3]).astype(np.float32)
    output, _ = net(x)
    # Each layer has a kernel and a bias, then a scale of 1 and an offset of 0.
    for kernel in numpy_variables(net)[::4]:
        x = x @ kernel
        x -= x.mean(-1, keepdims=True)
        x = np.maximum(x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-5), 0)
    np.testing.assert_allclose(output, x, rtol=1e-4, atol=1e-5)


def test_uint8_images_in_sequences_keep_their_outer_dimensions():
    net = EncodingNetwork(
        tf.TensorSpec([4, 4, 1], tf.uint8), conv_layer_params=[(2, 2, 2)]
    )
    output, _ = net(tf.zeros([2, 3, 4, 4, 1], tf.uint8))
    assert output.shape == (2, 3, 8)
    assert output.dtype == tf.float32


def test_one_dimensional_dilated_convolution():
    net = EncodingNetwork(
        tf.TensorSpec([6, 2], tf.float32),
        conv_layer_params=[(4, 2, 1, 2)],
        conv_type=encoding_network.CONV_TYPE_1D,
    )
    assert net.create_variables() == tf.TensorSpec([16], tf.float32)


def test_nested_observation_is_preprocessed_and_combined():
    spec = {"image": tf.TensorSpec([2, 2], tf.uint8), "speed": VECTOR}
    net = EncodingNetwork(
        spec,
        preprocessing_layers={
            "image": keras.Sequential(
                [
                    keras.layers.Lambda(lambda x: tf.cast(x, tf.float32) / 255.0),
                    keras.layers.Flatten(),
                ]
            ),
            "speed": keras.layers.Dense(2, use_bias=False),
        },
        preprocessing_combiner=keras.layers.Concatenate(),
        seed=0,
    )
    image = np.full([5, 2, 2], 255, np.uint8)
    speed = np.ones([5, 3], np.float32)
    output, _ = net({"image": image, "speed": speed})
    (kernel,) = numpy_variables(net)
    np.testing.assert_array_equal(output[:, :4], np.ones([5, 4]))
    np.testing.assert_allclose(output[:, 4:], speed @ kernel, rtol=1e-5, atol=1e-6)


def test_shallow_preprocessing_layers_get_sub_nests():
    pair = collections.namedtuple("Pair", ["a", "b"])
    spec = (pair(VECTOR, VECTOR), VECTOR)
    net = EncodingNetwork(
        spec,
        preprocessing_layers=(
            keras.layers.Lambda(lambda p: p.a - p.b),
            keras.layers.Lambda(lambda x: x),
        ),
        preprocessing_combiner=keras.layers.Add(),
    )
    ones = tf.ones([2, 3])
    output, _ = net((pair(5 * ones, 2 * ones), ones))
    np.testing.assert_array_equal(output, 4 * ones)


def test_single_observation_takes_a_single_layer():
    net = EncodingNetwork(VECTOR, preprocessing_layers=keras.layers.Rescaling(2.0))
    np.testing.assert_array_equal(net(tf.ones([1, 3]))[0], [[2.0, 2.0, 2.0]])


def test_a_network_serves_as_preprocessing_layer():
    inner = EncodingNetwork(VECTOR, fc_layer_params=(2,), seed=1)
    net = EncodingNetwork(VECTOR, preprocessing_layers=inner)
    assert net.create_variables() == tf.TensorSpec([2], tf.float32)


def test_given_layers_are_copied_not_used():
    layer = keras.layers.Dense(2)
    first = EncodingNetwork(VECTOR, preprocessing_layers=layer)
    second = first.copy()
    first.create_variables()
    second.create_variables()
    assert not layer.built
    assert not np.array_equal(first.variables[0], second.variables[0])


def test_layer_with_weights_is_warned_about():
    layer = keras.layers.Dense(2)
    layer.build((None, 3))
    with pytest.warns(UserWarning, match="weights already"):
        EncodingNetwork(VECTOR, preprocessing_layers=layer)


def test_layers_of_one_shape_start_with_different_weights():
    initializer = keras.initializers.GlorotUniform(seed=1)
    net = EncodingNetwork(
        VECTOR, fc_layer_params=(3, 3), kernel_initializer=initializer
    )
    net.create_variables()
    assert not np.array_equal(net.variables[0], net.variables[2])


@pytest.mark.parametrize("kwargs", [{"fc_layer_params": (5,)}, {}])
def test_seed_reaches_preprocessing_layers(kwargs):
    weights = []
    for _ in range(2):
        net = EncodingNetwork(
            VECTOR, preprocessing_layers=keras.layers.Dense(4), seed=5, **kwargs
        )
        net.create_variables()
        weights.append(numpy_variables(net))
    for a, b in zip(*weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_weight_decay_adds_to_the_losses():
    net = EncodingNetwork(
        VECTOR, fc_layer_params=(2, 2), weight_decay_params=[0.1, None], seed=0
    )
    net.create_variables()
    kernel = numpy_variables(net)[0]
    (loss,) = net.losses
    np.testing.assert_allclose(loss, 0.1 * np.sum(kernel**2), rtol=1e-5)


def test_dropout_acts_in_training_alone_unless_permanent():
    ones = tf.ones([8, 3])
    plain = EncodingNetwork(
        VECTOR, fc_layer_params=(50,), dropout_layer_params=[0.5], seed=0
    )
    permanent = EncodingNetwork(
        VECTOR,
        fc_layer_params=(50,),
        dropout_layer_params=[{"rate": 0.5, "permanent": True}],
        seed=0,
    )
    np.testing.assert_array_equal(plain(ones)[0], plain(ones)[0])
    assert not np.array_equal(plain(ones, training=True)[0], plain(ones)[0])
    assert not np.array_equal(permanent(ones)[0], permanent(ones)[0])


def test_dropout_follows_the_seed():
    def outputs():
        net = EncodingNetwork(
            VECTOR, fc_layer_params=(20,), dropout_layer_params=[0.5], seed=2
        )
        return [net(tf.ones([4, 3]), training=True)[0].numpy() for _ in range(2)]

    first, second = outputs(), outputs()
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first[0], first[1])


def test_dtype_is_that_of_the_layers():
    net = EncodingNetwork(
        tf.TensorSpec([3], tf.float64), fc_layer_params=(2,), dtype=tf.float64
    )
    assert net.create_variables() == tf.TensorSpec([2], tf.float64)


def test_without_batch_squash_layers_see_the_time_dimension():
    net = EncodingNetwork(VECTOR, batch_squash=False)
    assert net(tf.zeros([2, 5, 3]))[0].shape == (2, 15)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"conv_layer_params": [(2, 2)]}, r"conv_layer_params\[0\]: got \(2, 2\)"),
        (
            {"conv_layer_params": [(2, 2, 1)], "conv_type": "3d"},
            "conv_type: got '3d', expected '1d' or '2d'",
        ),
        (
            {"fc_layer_params": (2, 2), "dropout_layer_params": [0.1]},
            "dropout_layer_params: got 1 entries, expected 2",
        ),
        (
            {"fc_layer_params": (2,), "weight_decay_params": [0.1, 0.1]},
            "weight_decay_params: got 2 entries, expected 1",
        ),
        (
            {"fc_layer_params": (2,), "dropout_layer_params": [1.5]},
            r"rate: got 1.5, expected a number in \[0, 1\)",
        ),
        (
            {"preprocessing_layers": [keras.layers.Flatten()] * 2},
            "preprocessing_layers: got 2 layers, expected one",
        ),
    ],
)
def test_wrong_arguments_are_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        EncodingNetwork(VECTOR, **kwargs)


def test_several_observations_need_a_combiner():
    with pytest.raises(ValueError, match="preprocessing_combiner: got None for 2"):
        EncodingNetwork([VECTOR, VECTOR])


def test_preprocessing_layers_have_to_lie_over_the_specs():
    with pytest.raises(ValueError, match="preprocessing_layers: their structure"):
        EncodingNetwork(
            {"a": VECTOR, "b": VECTOR},
            preprocessing_layers={
                "a": keras.layers.Flatten(),
                "c": keras.layers.Flatten(),
            },
            preprocessing_combiner=keras.layers.Add(),
        )


def test_preprocessing_layer_has_to_be_a_layer():
    with pytest.raises(TypeError, match=r"wrap a function in keras.layers.Lambda"):
        EncodingNetwork(VECTOR, preprocessing_layers=tf.nn.relu)


def test_layers_have_a_flatten_between_convolutions_and_dense_layers():
    def kinds(spec, **kwargs):
        return [
            type(layer).__name__ for layer in EncodingNetwork(spec, **kwargs).layers
        ]

    assert kinds(tf.TensorSpec([2, 3])) == ["Flatten"]
    assert kinds(VECTOR, fc_layer_params=(2,)) == ["Flatten", "Dense"]
    assert kinds(
        tf.TensorSpec([4, 4, 1]),
        conv_layer_params=[(2, 2, 1)] * 2,
        fc_layer_params=(2,),
    ) == ["Conv2D", "Conv2D", "Flatten", "Dense"]
    assert kinds(
        {"a": VECTOR, "b": VECTOR},
        preprocessing_combiner=keras.layers.Concatenate(),
        fc_layer_params=(2,),
    ) == ["Concatenate", "Flatten", "Dense"]
