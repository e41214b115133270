"""Each operation computes in NumPy's code what TensorFlow computes."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.policies.exporting import numpy_code

X = np.random.default_rng(0).normal(size=(2, 7, 6, 3)).astype(np.float32)
KERNEL = tf.constant(np.random.default_rng(1).normal(size=(3, 2, 3, 4)), tf.float32)
MATRIX = tf.constant(np.random.default_rng(2).normal(size=(5, 3)), tf.float32)


def act_of(function, *shape):
    """Returns the compiled function of one input, and its source."""
    spec = tf.TensorSpec([None, *shape], tf.float32, "x")
    named = tf.function(lambda x: {"y": function(x)}, input_signature=[spec])
    source, arrays = numpy_code.compile_function(
        named.get_concrete_function(), {"x": tf.TensorSpec(shape)}, "policy.npz"
    )
    _, _, body = source.partition("INPUTS = ")
    scope = {"np": np, "w": arrays}
    exec(f"INPUTS = {body}", scope)
    return scope["act"], source


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.matmul(x, MATRIX, transpose_b=True),
        lambda x: tf.nn.conv2d(x, KERNEL, 2, "VALID"),
        lambda x: tf.nn.conv2d(x, KERNEL, [1, 2, 3, 1], "SAME"),
        lambda x: tf.nn.max_pool2d(x, 2, 2, "SAME"),
        lambda x: tf.nn.avg_pool2d(x, 3, 2, "VALID"),
        lambda x: tf.nn.softmax(x) + tf.nn.sigmoid(50 * x) + tf.nn.softplus(30 * x),
        lambda x: tf.nn.elu(x) + tf.nn.leaky_relu(x, 0.1) + tf.nn.selu(x),
        lambda x: tf.nn.relu6(4 * x) + tf.nn.softsign(x) + tf.math.rsqrt(x * x + 1),
        lambda x: x[:, 1:-1:2, ::-1, 0] + x[..., 5, 1][:, 1:6:2, None],
        lambda x: tf.reshape(x, [tf.shape(x)[0], -1])[:, :5],
        lambda x: tf.concat([*tf.split(x, [1, 2], -1), tf.zeros_like(x)], -1),
        lambda x: tf.stack(tf.unstack(x, axis=2), 1),
        lambda x: tf.transpose(x, [0, 3, 1, 2]) * tf.range(6, dtype=tf.float32),
        lambda x: tf.reduce_mean(x, [1, 2]) - tf.reduce_max(x, [1, 2]),
        lambda x: tf.reduce_sum(x, -1, keepdims=True) // 0.3 + tf.math.mod(x, 0.7),
        lambda x: tf.one_hot(tf.argmax(x, -1), 3) * tf.where(x > 0, x, 2.0),
        lambda x: (
            tf.gather(x, [2, 0], axis=3) ** 2 - tf.math.divide_no_nan(x, 0.0)[..., :2]
        ),
        lambda x: tf.cast(tf.logical_not((x > 0) & (x < 1)) | (x == 0), tf.float32),
        lambda x: tf.pad(x, [[0, 0], [1, 2], [0, 1], [0, 0]], constant_values=3.0),
        lambda x: tf.linalg.matmul(x, x, transpose_a=True),
        lambda x: tf.squeeze(tf.expand_dims(tf.cumsum(x, 1), 0), [0]),
        lambda x: (
            tf.clip_by_value(x, -0.5, 0.5) + tf.broadcast_to(x[:, :1], tf.shape(x))
        ),
        lambda x: tf.tile(x, [1, 1, 2, 1]) + tf.fill([2, 7, 12, 3], 2.5),
    ],
)
def test_an_operation_computes_the_same(function):
    act, _ = act_of(function, *X.shape[1:])
    expected = function(tf.constant(X)).numpy()
    got = act({"x": X})["y"]
    np.testing.assert_allclose(got, expected, 1e-5, 1e-5)
    assert got.dtype == expected.dtype


def test_constants_are_computed_and_equal_lines_written_once():
    def function(x):
        half = tf.sqrt(tf.constant(0.25)) * tf.ones([3])
        return tf.tanh(x * half) + tf.tanh(x * half)

    _, source = act_of(function, 3)
    body = source.partition("by name.")[2].splitlines()[1:]
    assert body == [
        "    x = inputs['x']",
        "    x1 = x * np.array([0.5, 0.5, 0.5], np.float32)",
        "    x2 = np.tanh(x1)",
        "    x3 = x2 + x2",
        "    return {",
        "        'y': x3,",
        "    }",
    ]


def test_an_operation_without_code_is_named():
    with pytest.raises(ValueError, match=r"^the operation Lgamma has no NumPy code$"):
        act_of(tf.math.lgamma, 3)
