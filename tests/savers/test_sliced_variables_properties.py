"""Variables of any shape and bits come back from checkpoints, in slices of any size."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.savers import sliced_variables

DTYPES = st.sampled_from([tf.float32, tf.float64, tf.int64, tf.uint8, tf.bfloat16])
SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


@properties.fewer(0.7)
@given(st.data(), DTYPES, SHAPES, st.integers(1, 64))
def test_variables_come_back(tmp_path_factory, data, dtype, shape, slice_bytes):
    sliced_variables.SLICE_BYTES, before = slice_bytes, sliced_variables.SLICE_BYTES
    try:
        value = data.draw(properties.of_bits(dtype.as_numpy_dtype, shape))
        variables = [tf.Variable(value), tf.Variable(tf.zeros(shape, dtype))]
        for variable in variables:
            sliced_variables.save_in_slices(variable)
        folder = tmp_path_factory.mktemp("checkpoint")
        path = tf.train.Checkpoint(v=variables[0]).write(str(folder / "ckpt"))
        tf.train.Checkpoint(v=variables[1]).read(path).assert_consumed()
    finally:
        sliced_variables.SLICE_BYTES = before
    properties.assert_same(variables[1].numpy(), value)
    reader = tf.train.load_checkpoint(path)
    key = "v" + sliced_variables.VARIABLE_VALUE
    parts = [part for _, part in sliced_variables.read_tensor(reader, path, key)]
    properties.assert_same(np.concatenate(parts), value)
    is_small = value.nbytes < slice_bytes // 4
    assert is_small or all(
        len(part) == 1 or np.asarray(part).nbytes <= slice_bytes for part in parts
    )
