"""The fields of what samplers return."""

import tensorflow as tf

from tfrl.replay_service.replay_sample import ReplaySample, SampleInfo


def test_fields_have_reverb_s_order():
    assert ReplaySample._fields == ("info", "data")
    assert SampleInfo._fields == (
        "key",
        "probability",
        "table_size",
        "priority",
        "times_sampled",
    )


def test_dtypes_shapes_and_zeros_are_of_the_fields():
    dtypes = SampleInfo.tf_dtypes()
    assert (dtypes.key, dtypes.times_sampled) == (tf.uint64, tf.int32)
    assert (dtypes.probability, dtypes.priority) == (tf.float64, tf.float64)
    assert dtypes.table_size == tf.int64
    assert all(shape.rank == 0 for shape in SampleInfo.tf_shapes())
    assert SampleInfo.zeros() == (0, 0.0, 0, 0.0, 0)
