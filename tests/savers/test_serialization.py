"""Nests as bytes, without pickles."""

import collections
import random

import ml_dtypes
import numpy as np
import pytest

from tfrl.savers import serialization
from tfrl.trajectories import time_step as ts

Place = collections.namedtuple("Place", ["x", "y"])
VALUES = {
    "none": None,
    "flag": True,
    "large": 2**127 + 1,
    "negative": -(2**300),
    "float": -0.0,
    "infinite": float("-inf"),
    "complex": 1 - 2j,
    "text": "naïve \ud800\n",
    "bytes": b"\x00\x80\xff",
    "no bytes": b"",
    "scalar": np.float32(0.1),
    "bool scalar": np.bool_(True),
    "text scalar": np.str_("J"),
    "array without dimensions": np.array(3, np.uint16),
    "empty": np.zeros((0, 3)),
    "columns first": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "bfloat16": np.array([[1, 2.5]], ml_dtypes.bfloat16),
    "float8": ml_dtypes.float8_e4m3fn(2),
    "structured": np.ones(2, [("x", "f4"), ("y", "i8")]),
    "date": np.array(["2020-01-01"], "M8[D]"),
    "text array": np.array(["a", "bcd"]),
    "bytes of TensorFlow": np.array([[b"a", "\u00e9".encode()]], object),
    "other byte order": np.arange(3, dtype=">i4"),
    "mapping": {1: "a", None: "b", 2.5: 2, "1": []},
    "ordered": collections.OrderedDict(b=1, a=2),
    "named": Place(1, (np.zeros(2), [])),
    "time step": ts.restart(np.zeros(2, np.float32)),
    "nothing": [(), [], {}],
    "PCG64": np.random.default_rng(3).bit_generator.state,
    "MT19937": np.random.RandomState(3).get_state(),
    "Python's random": random.Random(3).getstate(),
}


def assert_same(one, other):
    """Compares values, types and dtypes."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray | np.generic):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        assert_same(list(one.values()), list(other.values()))
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            assert_same(mine, theirs)
    else:
        assert repr(one) == repr(other)


@pytest.mark.parametrize("name", VALUES)
def test_a_value_comes_back_as_it_was(name):
    nest = {"value": VALUES[name]}
    assert_same(serialization.from_bytes(serialization.to_bytes(nest)), nest)


def test_nan_comes_back():
    value = serialization.from_bytes(serialization.to_bytes([float("nan")]))[0]
    assert value != value


def test_arrays_that_come_back_are_copies_that_can_be_written_to():
    array = np.zeros(2)
    back = serialization.from_bytes(serialization.to_bytes((array, array)))
    back[0][0] = 1
    assert (array.tolist(), back[1].tolist()) == ([0, 0], [0, 0])


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({1}, "builtins.set"),
        (len, "builtins.builtin_function_or_method"),
        (np.random.default_rng(0), "numpy.random._generator.Generator"),
        (np.ma.zeros(2), "numpy.ma.MaskedArray"),
        (np.zeros(1, [("x", object)]), "numpy.ndarray"),
    ],
)
def test_a_value_of_another_type_is_an_error_that_names_its_path(value, kind):
    with pytest.raises(
        serialization.UnsupportedValueError,
        match=rf"nest\['a'\]\[1\]\['y'\]: got a {kind}, expected an array, a number",
    ) as caught:
        serialization.to_bytes({"a": [0, Place(1, value)]})
    assert caught.value.path == ("a", 1, "y")


def test_an_object_in_an_array_is_named_by_its_path():
    with pytest.raises(serialization.UnsupportedValueError, match=r"nest\['a'\]\[1\]"):
        serialization.to_bytes({"a": np.array([b"text", {1}], object)})


def test_unknown_tags_are_damage():
    data = serialization.to_bytes({"a": 1})
    header = data[: data.index(b"\n") + 1]
    nest = np.frombuffer(b'{"os.system": "ls"}', np.uint8)
    with pytest.raises(
        serialization.UnreadableBytesError, match=r"damaged .*os.system"
    ):
        serialization.from_bytes(header + serialization.pack_arrays({"nest": nest}))


def test_an_array_whose_bytes_are_lost_is_damage():
    data = serialization.to_bytes({"a": np.arange(9)})
    # The size and the checksum of the first array in the directory of the npz file.
    entry = data.index(b"PK\1\2")
    zeros = data[: entry + 16] + bytes(12) + data[entry + 28 :]
    with pytest.raises(serialization.UnreadableBytesError, match="is not an array"):
        serialization.from_bytes(zeros)


def test_a_named_tuple_of_an_unknown_class_has_its_name_and_fields():
    data = serialization.to_bytes(Place(1, 2))
    gone = globals().pop("Place")
    try:
        back = serialization.from_bytes(data)
    finally:
        globals()["Place"] = gone
    assert (type(back).__name__, back.x, back.y) == ("Place", 1, 2)
