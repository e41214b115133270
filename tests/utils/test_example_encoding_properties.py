"""Nests of any dtypes, shapes and bits come back from protos of examples."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.utils import example_encoding

LEAVES = st.builds(
    lambda dtype, shape: tf.TensorSpec(shape, dtype),
    st.sampled_from(
        [
            *(tf.float32, tf.float64, tf.half, tf.bfloat16, tf.bool, tf.complex64),
            *(tf.int8, tf.int16, tf.int32, tf.int64),
            *(tf.uint8, tf.uint16, tf.uint32, tf.uint64),
        ]
    ),
    st.lists(st.integers(1, 3), max_size=3).map(tuple),
)
SPECS = properties.nests(LEAVES, st.text("abc", min_size=1), may_be_empty=False)


@given(st.data(), SPECS, st.booleans())
def test_arrays_come_back(data, spec, batched):
    nest = tf.nest.map_structure(
        lambda leaf: data.draw(
            properties.of_bits(leaf.dtype.as_numpy_dtype, tuple(leaf.shape))
        ),
        spec,
    )
    encoded = example_encoding.get_example_serializer(spec)(nest)
    decode = example_encoding.get_example_decoder(spec, batched=batched)
    got = decode([encoded, encoded]) if batched else decode(encoded)
    got = tf.nest.map_structure(lambda x: x.numpy()[-1] if batched else x.numpy(), got)
    tf.nest.map_structure(
        lambda one, other: properties.assert_same(np.asarray(one), other), got, nest
    )
