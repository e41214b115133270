"""Specs of dm_env there and back."""

import tree
from hypothesis import given
from hypothesis import strategies as st

from tests.specs import drawn
from tfrl.specs import dm_env_specs


@given(st.lists(drawn.SPECS, max_size=12) | drawn.nests())
def test_array_specs_come_back(nest):
    converted = dm_env_specs.to_dm_env_spec(nest)
    drawn.assert_same_specs(dm_env_specs.from_dm_env_spec(converted), nest)
    for one, other in zip(tree.flatten(converted), tree.flatten(nest), strict=True):
        assert (tuple(one.shape), one.dtype) == (other.shape, other.dtype)
