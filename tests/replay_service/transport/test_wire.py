"""Messages come back as they were sent, and nothing else is taken for one."""

import json
import random
import struct

import ml_dtypes
import numpy as np
import pytest

from tfrl.replay_service import errors
from tfrl.replay_service.transport import wire

HEAD = struct.Struct("<2sBBIH")


def join(*message):
    return b"".join(bytes(buffer) for buffer in wire.encode(*message))


def described(name, *dimensions):
    """Returns a message of one array that says of itself what is given."""
    text = bytes([len(name)]) + name + bytes([len(dimensions)])
    text += b"".join(struct.pack("<Q", size) for size in dimensions)
    return HEAD.pack(b"TR", wire.PROTOCOL, 1, 0, 1) + text


@pytest.mark.parametrize(
    "dtype",
    [*"?bhilqBHILQefdFD", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4],
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 5), (2, 3)])
def test_arrays_come_back_as_read_only_views(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    frame = wire.decode(join(7, {"a": [1, None, "ü"]}, [array, array.T]))
    assert frame.kind == 7
    assert frame.meta == {"a": [1, None, "ü"]}
    for got, expected in zip(frame.arrays, (array, array.T), strict=True):
        assert got.dtype == array.dtype
        assert got.shape == expected.shape
        np.testing.assert_array_equal(got, expected)
        assert not got.flags.writeable
        assert got.flags.aligned


def test_large_arrays_are_not_copied():
    array = np.zeros(1000)
    message = wire.encode(1, {}, [array])
    assert any(np.shares_memory(np.frombuffer(b, np.uint8), array) for b in message[1:])


def test_arrays_of_too_many_dimensions_are_not_sent():
    with pytest.raises(ValueError, match="rank 33, expected at most 32"):
        wire.encode(1, {}, [np.zeros((1,) * 33)])


def test_message_without_anything_is_short():
    assert join(wire.OK, {}) == HEAD.pack(b"TR", wire.PROTOCOL, wire.OK, 0, 0)


@pytest.mark.parametrize(
    "value", [np.array(["a"]), np.array([None]), np.zeros(2, ">i4")]
)
def test_what_is_no_number_of_this_machine_is_not_sent(value):
    with pytest.raises(ValueError, match="cannot be replayed, only numbers"):
        wire.encode(1, {}, [value])


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"", "message of 0 bytes"),
        (b"XX" + join(1, {})[2:], "another protocol"),
        (HEAD.pack(b"TR", 9, 1, 0, 0), "another protocol"),
        (HEAD.pack(b"TR", wire.PROTOCOL, 1, 0, 5000), "5000 arrays"),
        (
            HEAD.pack(b"TR", wire.PROTOCOL, 1, 3, 0) + b"[]",
            "of 12 bytes, expected at least 13",
        ),
        (HEAD.pack(b"TR", wire.PROTOCOL, 1, 2, 0) + b"[]", "Got a list as"),
        (HEAD.pack(b"TR", wire.PROTOCOL, 1, 2, 0) + b"{]", "invalid JSON"),
        (HEAD.pack(b"TR", wire.PROTOCOL, 1, 2, 0) + b"\xff\xff", "invalid JSON"),
        (join(1, {}) + b"\0", "Got 11 bytes for a message of 10"),
        (described(b"object"), "no dtype 'object'"),
        (described(b"i4,i4"), "no dtype 'i4,i4'"),
        (described(b"(3,)f4"), "no dtype"),
        (described(b"\xff"), "ascii"),
        (described(b"__name__"), "no dtype '__name__'"),
        (described(b"float32", *[1] * 40), "rank 40"),
        (described(b"float32", 3) + bytes(10), "an array of float32 .3,. at"),
        (described(b"float32", 2**63, 0), "an array of float32"),
        (described(b"uint8", 2**64 - 1), "an array of uint8"),
        (described(b"uint8", 2**62, 2**62), "an array of uint8"),
        (described(b"float32", 3)[:-1], "expected at least"),
        (described(b"float32")[:13], "expected at least"),
    ],
)
def test_what_is_no_message_is_refused(message, text):
    with pytest.raises(errors.ProtocolError, match=text):
        wire.decode(message)


def test_truncated_or_garbled_messages_raise_nothing_else():
    rng = random.Random(0)
    whole = join(3, {"a": 1}, [np.ones((2, 3)), np.arange(5, dtype=np.uint8)])
    for length in range(len(whole)):
        with pytest.raises(errors.ProtocolError):
            wire.decode(whole[:length])
    for _ in range(3000):
        message = bytearray(whole)
        for _ in range(rng.randint(1, 5)):
            message[rng.randrange(len(message))] = rng.randrange(256)
        try:
            frame = wire.decode(bytes(message))
        except errors.ProtocolError:
            continue
        assert sum(array.nbytes for array in frame.arrays) <= len(whole)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ("x" * wire.MAX_JSON_BYTES, "bytes of JSON in a message, expected at most"),
        (
            [0] * wire.MAX_JSON_VALUES,
            "values in the JSON of a message, expected at most",
        ),
        ([[]] * wire.MAX_JSON_VALUES, "values in the JSON of a message"),
        ([{"a": 0}] * (wire.MAX_JSON_VALUES // 2), "values in the JSON of a message"),
    ],
)
def test_the_json_of_requests_is_limited_before_it_is_parsed(values, text, monkeypatch):
    message = join(1, {"a": values})
    assert wire.decode(message).meta == {"a": values}  # Clients trust their server.

    def parse(text):
        raise AssertionError

    monkeypatch.setattr(json, "loads", parse)
    with pytest.raises(errors.ProtocolError, match=text):
        wire.decode(message, is_request=True)


def test_a_request_at_the_limit_is_read():
    values = [0] * (wire.MAX_JSON_VALUES - 3)
    assert wire.decode(join(1, {"a": values}), is_request=True).meta == {"a": values}
