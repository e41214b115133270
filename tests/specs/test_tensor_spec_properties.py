"""Specs of tensors there and back, and samples of them."""

from hypothesis import given
from hypothesis import strategies as st

from tests.specs import drawn
from tfrl.specs import tensor_spec


@given(drawn.nests())
def test_array_specs_come_back(nest):
    back = tensor_spec.to_array_spec(tensor_spec.from_spec(nest))
    drawn.assert_same_specs(back, nest)


@given(drawn.BOUNDED, st.integers(0, 99))
def test_samples_conform(spec, seed):
    sample = tensor_spec.sample_bounded_spec(tensor_spec.from_spec(spec), seed)
    assert spec.check_array(sample.numpy())


@given(drawn.nests(may_be_empty=False), st.lists(st.integers(1, 3), max_size=2))
def test_outer_dimensions_are_added_and_removed(nest, outer):
    specs = tensor_spec.from_spec(nest)
    more = tensor_spec.add_outer_dims_nest(specs, outer)
    back = tensor_spec.remove_outer_dims_nest(more, len(outer))
    drawn.assert_same_specs(tensor_spec.to_array_spec(back), nest)
