"""Any nest comes back from its bytes, and damaged bytes are one error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.savers import serialization

KEYS = st.one_of(
    properties.TEXTS,
    st.integers(),
    st.none(),
    st.booleans(),
    st.binary(max_size=3),
    st.tuples(st.integers(), properties.TEXTS),
)
TEXT_ARRAYS = st.lists(properties.TEXTS | st.binary(max_size=4), max_size=4).map(
    lambda texts: np.array([*texts, None], object)[:-1]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    properties.TEXTS,
    st.binary(max_size=6),
    properties.arrays(),
    properties.DTYPES.flatmap(
        lambda dtype: properties.of_bits(dtype, ()).map(lambda x: x[()])
    ),
    TEXT_ARRAYS,
    st.lists(st.text("aé", max_size=3), min_size=1, max_size=3).map(np.array),
    properties.floats(2).map(lambda x: x.astype(">f8")),
    st.integers(-(2**62), 2**62).map(lambda x: np.datetime64(x, "ns")),
)
NESTS = properties.nests(LEAVES, KEYS)


@given(NESTS)
def test_nests_come_back(nest):
    assert serialization.is_storable(nest)
    got = serialization.from_bytes(serialization.to_bytes(nest))
    properties.assert_same(got, nest)


@given(st.data(), NESTS)
def test_damaged_bytes_are_an_error_or_the_same_nest(data, nest):
    whole = serialization.to_bytes(nest)
    try:
        got = serialization.from_bytes(properties.damaged(data.draw, whole))
    except serialization.UnreadableBytesError:
        return
    # Some bytes of a zip file mean nothing, such as the time of a file.
    properties.assert_same(got, nest)


@given(st.binary(max_size=60))
def test_other_bytes_are_an_error(data):
    for content in (data, serialization._HEADER + data):
        with pytest.raises(serialization.UnreadableBytesError):
            serialization.from_bytes(content)
