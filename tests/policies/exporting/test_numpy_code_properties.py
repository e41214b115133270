"""Functions composed of any operations compute the same as NumPy's code."""

import numpy as np
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st

from tests import properties
from tests.policies.exporting.test_numpy_code import act_of

BATCH, SIZE = 3, 4
MATRIX = tf.constant(np.random.default_rng(0).normal(size=(SIZE, SIZE)), tf.float32)
# Each keeps numbers small, and takes and returns `[B, SIZE]`.
ONE = {
    "tanh": tf.tanh,
    "relu": tf.nn.relu,
    "elu": tf.nn.elu,
    "softplus": tf.nn.softplus,
    "sigmoid": tf.sigmoid,
    "softmax": tf.nn.softmax,
    "negative": tf.negative,
    "square of tanh": lambda x: tf.square(tf.tanh(x)),
    "matmul": lambda x: tf.matmul(tf.tanh(x), MATRIX),
    "reverse": lambda x: x[:, ::-1],
    "roll": lambda x: tf.concat([x[:, 1:], x[:, :1]], -1),
    "sum": lambda x: tf.tanh(x) - tf.reduce_sum(tf.tanh(x), -1, keepdims=True),
    "max": lambda x: x - tf.reduce_max(x, -1, keepdims=True),
    "mean": lambda x: x - tf.reduce_mean(x, 1)[:, tf.newaxis],
    "cumsum": lambda x: tf.cumsum(tf.tanh(x), 1),
    "gather": lambda x: tf.gather(x, [3, 1, 1, 0], axis=1),
    "one hot": lambda x: tf.one_hot(tf.argmax(x, -1), SIZE),
    "transpose": lambda x: tf.reshape(
        tf.transpose(tf.reshape(x, [-1, 2, 2]), [0, 2, 1]), [-1, SIZE]
    ),
    "split": lambda x: tf.concat(tf.split(x, [1, 3], -1)[::-1], -1),
    "unstack": lambda x: tf.stack(tf.unstack(x, axis=1)[::-1], 1),
    "pad": lambda x: tf.pad(x, [[0, 0], [1, 0]])[:, :SIZE],
    "tile": lambda x: tf.tile(x[:, :2], [1, 2]),
    "cast": lambda x: tf.cast(x > 0, tf.float32),
}
TWO = {
    "add": tf.add,
    "subtract": tf.subtract,
    "product of tanh": lambda x, y: tf.tanh(x) * tf.tanh(y),
    "divide": lambda x, y: x / (1 + tf.abs(y)),
    "divide by 0": lambda x, y: tf.math.divide_no_nan(tf.tanh(x), tf.round(tf.tanh(y))),
    "maximum": tf.maximum,
    "minimum": tf.minimum,
    "where": lambda x, y: tf.where(x > y, x, tf.tanh(y)),
    "clip": lambda x, y: tf.clip_by_value(x, -tf.abs(y), tf.abs(y)),
    "squared difference": lambda x, y: tf.math.squared_difference(
        tf.tanh(x), tf.tanh(y)
    ),
}
# Each line has an operation, and the lines that it takes, as counted from the last one.
LINES = st.lists(
    st.tuples(st.sampled_from([*ONE, *TWO]), st.integers(1, 4), st.integers(1, 4)),
    min_size=1,
    max_size=8,
)


def program(lines):
    def function(x):
        found = [x]
        for name, one, other in lines:
            if name in ONE:
                found.append(ONE[name](found[-1]))
            else:
                found.append(
                    TWO[name](
                        found[-min(one, len(found))], found[-min(other, len(found))]
                    )
                )
        return found[-1]

    return function


@example(
    [("divide by 0", 1, 1)], np.linspace(-99, 99, 12, dtype=np.float32).reshape(3, 4)
)
@properties.fewer(0.5)
@given(LINES, properties.floats(BATCH, SIZE))
def test_a_program_computes_the_same(lines, x):
    x = x / 32
    act, _ = act_of(program(lines), SIZE)
    expected = program(lines)(tf.constant(x)).numpy()
    np.testing.assert_allclose(act({"x": x})["y"], expected, rtol=1e-3, atol=1e-3)
