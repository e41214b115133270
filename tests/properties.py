"""The profiles of the property tests, and the data that several of them draw.

Hypothesis draws examples of strangers' data, and shows the smallest that fails. In the
suite it draws the same few in each run; `pytest --hypothesis-profile=nightly` draws
many others each time, and prints how to draw a failing one again.
"""

from __future__ import annotations

import collections
import math
from typing import Any, NamedTuple

import hypothesis
import ml_dtypes
import numpy as np
from hypothesis import strategies as st

_COMMON: dict[str, Any] = {
    "database": None,
    "deadline": None,
    "print_blob": True,
    # An example may take a while, and fixtures are the same for all examples.
    "suppress_health_check": [
        hypothesis.HealthCheck.too_slow,
        hypothesis.HealthCheck.function_scoped_fixture,
    ],
}
hypothesis.settings.register_profile(
    "suite", derandomize=True, max_examples=20, **_COMMON
)
hypothesis.settings.register_profile("nightly", max_examples=400, **_COMMON)
hypothesis.settings.load_profile("suite")


def fewer(share: float) -> hypothesis.settings:
    """Returns the settings of a property whose examples take long.

    Args:
      share: Its examples, as a share of those of others.
    """
    number = hypothesis.settings.default.max_examples
    return hypothesis.settings(max_examples=max(1, round(share * number)))


class Pair(NamedTuple):
    """A named tuple that this process knows."""

    left: Any
    right: Any


FLOATS = st.floats(-100, 100, width=32)
# Texts of files and of messages, which may hold anything that Unicode has.
TEXTS = st.text(max_size=8)
_NUMBERS = [np.dtype(code) for code in "bhilBHILefd"]
# Booleans, integers, floats and complex numbers, and some of those that NumPy lacks.
DTYPES = st.sampled_from(
    [
        *(np.dtype(code) for code in "?bhilBHILefdFD"),
        np.dtype(ml_dtypes.bfloat16),
        np.dtype(ml_dtypes.float8_e4m3fn),
    ]
)
SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)


def of_bits(dtype: Any, shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    """Draws arrays of any bits, among them NaN, infinities and the largest integers."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    words = st.binary(min_size=size, max_size=size)

    def array(bits: bytes) -> np.ndarray:
        if dtype.kind == "b":
            return (np.frombuffer(bits, np.uint8) % 2).astype(bool).reshape(shape)
        return np.frombuffer(bits, dtype).reshape(shape).copy()

    return words.map(array)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    """Draws an array of any dtype, shape and bits, contiguous or not."""
    array = draw(of_bits(draw(DTYPES), draw(SHAPES)))
    return draw(st.sampled_from([array, array.T, array[::-1] if array.ndim else array]))


def floats(*shape: int) -> st.SearchStrategy[np.ndarray]:
    """Draws arrays of small float32 numbers."""
    size = math.prod(shape)
    numbers = st.lists(FLOATS, min_size=size, max_size=size)
    return numbers.map(lambda x: np.array(x, np.float32).reshape(shape))


def flags(*shape: int) -> st.SearchStrategy[np.ndarray]:
    """Draws arrays of booleans."""
    size = math.prod(shape)
    bits = st.lists(st.booleans(), min_size=size, max_size=size)
    return bits.map(lambda x: np.array(x, bool).reshape(shape))


def nests(
    leaves: st.SearchStrategy[Any],
    keys: st.SearchStrategy[Any] = TEXTS,
    *,
    most: int = 6,
    may_be_empty: bool = True,
) -> st.SearchStrategy[Any]:
    """Draws nests of leaves in lists, tuples, named tuples and mappings.

    Args:
      leaves: The leaves.
      keys: The keys of mappings.
      most: About the largest number of leaves.
      may_be_empty: Whether there are empty lists, tuples and mappings.
    """

    def around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        several = st.lists(inner, min_size=0 if may_be_empty else 1, max_size=3)
        least = 0 if may_be_empty else 1
        mapping = st.dictionaries(keys, inner, min_size=least, max_size=3)
        return st.one_of(
            several,
            several.map(tuple),
            mapping,
            mapping.map(collections.OrderedDict),
            st.builds(Pair, inner, inner),
        )

    return st.recursive(leaves, around, max_leaves=most)


def assert_same(got: Any, expected: Any) -> None:
    """Asserts that two nests have the same types, and arrays of the same bits."""
    assert type(got) is type(expected)
    if isinstance(expected, np.ndarray | np.generic) and expected.dtype != object:
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        assert got.tobytes() == expected.tobytes()
    elif isinstance(expected, collections.abc.Mapping):
        assert list(got) == list(expected)
        for key, value in expected.items():
            assert_same(got[key], value)
    elif isinstance(expected, list | tuple):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert_same(one, other)
    else:
        # NaN is the same as NaN here, and bounds of specs may broadcast.
        assert repr(got) == repr(expected) or (
            got == expected and got.name == expected.name
        )


def cut(draw: st.DrawFn, number: int) -> list[slice]:
    """Draws a way to cut `number` rows into parts, some of which may be empty."""
    places = draw(st.lists(st.integers(0, number), max_size=5).map(sorted))
    return [
        slice(start, end)
        for start, end in zip([0, *places], [*places, number], strict=True)
    ]


def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Draws what may become of bytes: cut, longer, or with one of them changed."""
    place = draw(st.integers(0, len(data) - 1))
    kind = draw(st.sampled_from(["cut", "changed", "longer"]))
    if kind == "cut":
        return data[:place]
    if kind == "longer":
        return data[:place] + draw(st.binary(min_size=1, max_size=9)) + data[place:]
    other = draw(st.integers(1, 255))
    return data[:place] + bytes([data[place] ^ other]) + data[place + 1 :]
