import numpy as np
import pytest

from tfrl.environments.boundary import action_specs
from tfrl.specs.array_spec import ArraySpec, BoundedArraySpec


def test_one_hot_spec_has_an_element_for_each_value():
    spec = action_specs.one_hot_spec((), BoundedArraySpec((2,), np.int8, -1, 1))
    assert spec == BoundedArraySpec((2, 3), np.int8, 0, 1, name="one_hot_action_spec")


def test_one_hot_spec_of_floats_is_their_spec():
    spec = ArraySpec((2,), np.float32)
    assert action_specs.one_hot_spec((), spec) is spec


def test_one_hot_spec_names_the_leaf_that_it_refuses():
    with pytest.raises(ValueError, match=r"action_spec/a/0: got .*the same, small"):
        action_specs.one_hot_spec(("a", 0), BoundedArraySpec((), np.int64, 0, 2**20))


def test_float32_spec_keeps_bounds_and_what_is_no_other_float():
    force = BoundedArraySpec((2,), np.float64, [-np.inf, 0.1], np.inf, name="force")
    spec = action_specs.float32_spec(force)
    assert (spec.dtype, spec.name) == (np.float32, "force")
    limit = np.finfo(np.float32).max
    assert spec.minimum.tolist() == [-limit, np.float32(0.1)]
    assert spec.maximum == limit
    for same in (ArraySpec((), np.int64), BoundedArraySpec((), np.float32, 0, 1)):
        assert action_specs.float32_spec(same) is same
    free = action_specs.float32_spec(ArraySpec((3,), np.float16))
    assert free == ArraySpec((3,), np.float32)


def test_flat_spec_joins_sizes_and_bounds():
    specs = [
        BoundedArraySpec((2,), np.float32, [-1, -2], 3),
        BoundedArraySpec((), np.float32, 0, 1),
    ]
    spec = action_specs.flat_spec(specs)
    assert (spec.shape, spec.dtype) == ((3,), np.float32)
    assert spec.minimum.tolist() == [-1, -2, 0]
    assert spec.maximum.tolist() == [3, 3, 1]
    assert action_specs.flat_spec(specs, np.float64).dtype == np.float64


def test_flat_spec_of_specs_without_bounds_has_none():
    specs = [ArraySpec((2,), np.int32), BoundedArraySpec((), np.int32, 0, 1)]
    assert type(action_specs.flat_spec(specs)) is ArraySpec
