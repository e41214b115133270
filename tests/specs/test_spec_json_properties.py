"""Nests of specs come back from JSON, and nothing else is taken for one."""

import json

import tree
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tests.specs import drawn
from tfrl.specs import array_spec, spec_json

KEYS = properties.TEXTS | st.integers(-9, 9)
NESTS = properties.nests(drawn.SPECS, drawn.KEYS) | st.dictionaries(
    KEYS, drawn.SPECS, max_size=3
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | properties.TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["dict", "list", "tuple", "shape", "dtype", "namedtuple"])
            | st.sampled_from(["ordered_dict", "fields", "values", "minimum", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


def as_array_spec(leaf):
    if leaf.minimum is None:
        return array_spec.ArraySpec(leaf.shape, leaf.dtype, leaf.name)
    return array_spec.BoundedArraySpec(
        leaf.shape, leaf.dtype, leaf.minimum, leaf.maximum, leaf.name
    )


@given(NESTS)
def test_nests_come_back(nest):
    value = json.loads(json.dumps(spec_json.encode(nest)))
    properties.assert_same(spec_json.decode(value, as_array_spec), nest)
    if not mixes_keys(nest):
        assert len(spec_json.leaves(value)) == len(tree.flatten(nest))


def mixes_keys(nest):
    """Whether a mapping has keys that have no order."""
    return isinstance(nest, dict) and len({type(key) for key in nest}) > 1


@given(VALUES)
def test_other_json_is_refused(value):
    try:
        found = spec_json.decode(value)
    except ValueError:
        return
    tree.map_structure(lambda spec: spec.shape, found)
