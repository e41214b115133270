"""Samples of specs conform to them, and specs are the same after a pickle."""

import pickle

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tests.specs import drawn
from tfrl.specs import array_spec


@example(array_spec.BoundedArraySpec((40,), np.int32, 0, 1), 0, True)
@example(array_spec.BoundedArraySpec((40,), np.int32, [0] * 40, [1] * 40), 0, True)
@given(drawn.BOUNDED, st.integers(0, 99), st.booleans())
def test_samples_conform(spec, seed, legacy):
    rng = np.random.RandomState(seed) if legacy else np.random.default_rng(seed)
    assert spec.check_array(array_spec.sample_bounded_spec(spec, rng))
    nest = (spec, {"x": spec})
    samples = array_spec.sample_spec_nest(nest, rng, [2])
    whole = array_spec.add_outer_dims_nest(nest, [2])
    assert array_spec.check_arrays_nest(samples, whole)


@given(drawn.nests())
def test_specs_come_back_from_pickles(nest):
    drawn.assert_same_specs(pickle.loads(pickle.dumps(nest)), nest)


@example(array_spec.BoundedArraySpec((), np.uint64))
@given(drawn.BOUNDED)
def test_the_number_of_values_is_that_of_the_range(spec):
    if spec.dtype.kind not in "iu":
        assert spec.num_values is None
        return
    ends = zip(
        *(np.broadcast_to(x, spec.shape).ravel().tolist() for x in _ends(spec)),
        strict=True,
    )
    expected = [min(high - low + 1, 2**63 - 1) for low, high in ends]
    assert spec.num_values.ravel().tolist() == expected


def _ends(spec):
    return spec.minimum, spec.maximum
