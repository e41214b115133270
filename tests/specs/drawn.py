"""Specs of any dtype, shape and bounds, in nests."""

import ml_dtypes
import numpy as np
import tree
from hypothesis import strategies as st

from tests import properties
from tfrl.specs import array_spec, bounds

NAMES = st.none() | st.sampled_from(["x", "observation", "é/1"])
DTYPES = st.sampled_from(
    [np.dtype(code) for code in "?bhilBHILefd"] + [np.dtype(ml_dtypes.bfloat16)]
)
KEYS = st.text("abc_1", min_size=1, max_size=3)


@st.composite
def _bounded(draw):
    dtype, shape = draw(DTYPES), draw(properties.SHAPES)
    of_each = draw(st.booleans())
    ends = [draw(properties.of_bits(dtype, shape if of_each else ())) for _ in range(2)]
    ends = [np.where(x != x, np.zeros((), dtype), x).astype(dtype) for x in ends]
    low, high = (function(*ends) for function in (np.minimum, np.maximum))
    span = draw(st.sampled_from(["any", "one value", "two values", "from 0", "all"]))
    if span == "from 0":
        low = np.minimum(low, np.zeros((), dtype))
    elif span == "all":
        low, high = bounds.dtype_limits(dtype)
    elif span != "any":
        low = high
        if span == "two values" and dtype.kind in "iu":
            low = np.where(high > np.iinfo(dtype).min, high - 1, high).astype(dtype)
    return array_spec.BoundedArraySpec(shape, dtype, low, high, draw(NAMES))


BOUNDED = _bounded()
PLAIN = st.builds(array_spec.ArraySpec, properties.SHAPES, DTYPES, NAMES)
SPECS = BOUNDED | PLAIN


def nests(may_be_empty=True):
    return properties.nests(SPECS, KEYS, may_be_empty=may_be_empty)


def assert_same_specs(got, expected):
    """Asserts that two nests of array specs are the same, with bounds and names."""

    def check(one, other):
        assert type(one) is type(other)
        assert (one, one.name) == (other, other.name)

    tree.map_structure(check, got, expected)
