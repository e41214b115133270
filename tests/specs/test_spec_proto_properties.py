"""Nests of specs come back from protos."""

import tensorflow as tf
from hypothesis import given

from tests.specs import drawn
from tfrl.specs import spec_proto, tensor_spec


def as_plain_mappings(nest):
    """The nest with dicts for all mappings, whose keys are sorted, as protos have."""
    if isinstance(nest, dict):
        return {key: as_plain_mappings(nest[key]) for key in sorted(nest)}
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return type(nest)(*map(as_plain_mappings, nest))
    if isinstance(nest, list | tuple):
        return type(nest)(map(as_plain_mappings, nest))
    return nest


@given(drawn.nests())
def test_nests_come_back(nest):
    proto = spec_proto.to_proto(nest)
    again = type(proto).FromString(proto.SerializeToString())
    got = tensor_spec.to_array_spec(spec_proto.from_proto(again))
    expected = as_plain_mappings(nest)
    tf.nest.assert_same_structure(got, expected)
    for one, other in zip(tf.nest.flatten(got), tf.nest.flatten(expected), strict=True):
        drawn.assert_same_specs(one, other)
