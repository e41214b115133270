"""Encodes messages as bytes: a kind, a JSON object, and arrays as flat buffers.

The layout of a message follows; integers are little-endian. Nothing in a message is
ever unpickled, and every length is checked against the available bytes before use.

    magic "TR" | version u8 | kind u8 | length of the JSON u32 | number of arrays u16
    for each array: length of the dtype's name u8 | the name | rank u8 | dimensions u64
    the JSON, in UTF-8
    for each array: zeros up to a multiple of 8 from the start | its bytes, in C order
"""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrl.replay_service import errors
from tfrl.specs.dtype_names import dtype_from_name, dtype_name

HELLO, WELCOME, OK, ERROR, WAITING = 1, 2, 3, 4, 5
INFO, INFO_REPLY, RESET, MUTATE, CHECKPOINT = 10, 11, 12, 13, 14
SAMPLE, SAMPLES, RELEASE = 20, 21, 22
WRITE, CONFIRMED = 30, 31

PROTOCOL = 2

# The limits of a message. A message is read into memory, and its JSON is parsed, before
# it is known to be valid. So they bound the memory that any client can make the server
# use, and the time for which it can make other clients wait. Clients divide larger
# requests among several messages.
MAX_FRAME = 512 << 20  # Bytes.
MAX_GREETING_BYTES = 64 << 10  # Bytes of a message before a valid greeting.
MAX_JSON_BYTES = 4 << 20  # Bytes of the JSON in a request.
MAX_JSON_VALUES = 1 << 17  # Values in the JSON of a request, parsed in 20 ms.
MAX_ARRAYS = 4096
MAX_COLUMNS = 4000  # Columns of a writer's steps, and of an item.
MAX_RANK = 32  # Dimensions of an array.
MAX_STEP_RANK = MAX_RANK - 2  # A step's leaf; items add time, and messages add items.

_HEAD = struct.Struct("<2sBBIH")
_MAGIC = b"TR"
_ALIGNMENT = 8
_FEW_BYTES = 1 << 14  # Bytes of JSON that cannot contain many values.

_DIMENSIONS = [struct.Struct(f"<{rank}Q") for rank in range(MAX_RANK + 1)]
_to_json = json.JSONEncoder(separators=(",", ":")).encode

Buffer = bytes | bytearray | memoryview


class Frame(NamedTuple):
    """A decoded message.

    Attributes:
      kind: One of this module's constants.
      meta: The JSON object.
      arrays: The arrays.
    """

    kind: int
    meta: dict[str, Any]
    arrays: list[np.ndarray]


def encode(
    kind: int,
    meta: Mapping[str, Any] | None = None,
    arrays: Sequence[np.ndarray] = (),
) -> list[Buffer]:
    """Returns a message as a list of buffers, to be sent in order.

    Args:
      kind: One of this module's constants.
      meta: A JSON object.
      arrays: Arrays of numbers, of any shapes. Contiguous arrays are not copied: do not
        change them before the buffers have been sent.

    Raises:
      ValueError: If the values of an array have no fixed size (objects, for example),
        or it has more than 32 dimensions.
    """
    text = _to_json(meta).encode() if meta else b""
    head = [_HEAD.pack(_MAGIC, PROTOCOL, kind, len(text), len(arrays))]
    contiguous = []
    for array in arrays:
        # np.ascontiguousarray would turn scalars into vectors.
        array = np.asarray(array, order="C")
        contiguous.append(array)
        head.append(_describe(array.dtype, array.shape))
    head.append(text)
    start = b"".join(head)
    buffers: list[Buffer] = [start]
    offset = len(start)
    for array in contiguous:
        padding = -offset % _ALIGNMENT
        if padding:
            buffers.append(bytes(padding))
        if array.nbytes:
            buffers.append(_bytes_of(array))
        offset += padding + array.nbytes
    return buffers


def decode(buffer: Buffer, *, is_request: bool = False) -> Frame:
    """Returns the message in `buffer`, with arrays that are views of the buffer.

    Args:
      buffer: The bytes of the message.
      is_request: Whether the message comes from a client. Then the limits of its JSON
        are checked before it is parsed.

    Raises:
      ProtocolError: If the buffer does not hold exactly one message, or the message
        exceeds a limit.
    """
    view = memoryview(buffer).toreadonly()
    if len(view) < _HEAD.size:
        raise errors.ProtocolError(
            f"Got a message of {len(view)} bytes, expected at least {_HEAD.size}."
        )
    magic, version, kind, text_length, count = _HEAD.unpack_from(view)
    if magic != _MAGIC or version != PROTOCOL:
        raise errors.ProtocolError(
            f"Got a message that starts with {magic!r} {version}, expected {_MAGIC!r} "
            f"{PROTOCOL}: the other side uses another protocol. Install the same "
            "version of tfrl on both sides."
        )
    if count > MAX_ARRAYS:
        raise errors.ProtocolError(
            f"Got {count} arrays in a message, expected at most {MAX_ARRAYS}."
        )
    described, offset = _read_descriptions(view, count)
    end = offset + text_length
    if end > len(view):
        raise _too_short(view, end)
    if is_request and text_length > _FEW_BYTES:
        _check_json(view[offset:end])
    meta = _read_json(view[offset:end]) if text_length else {}
    offset = end
    arrays = []
    for dtype, shape in described:
        offset += -offset % _ALIGNMENT
        try:
            # This raises if there are too few bytes.
            array = np.ndarray(shape, dtype, view, offset)
        except (TypeError, ValueError, OverflowError) as error:
            raise errors.ProtocolError(
                f"Got an array of {dtype} {shape} at offset {offset} of a message of "
                f"{len(view)} bytes: {error}."
            ) from None
        offset += array.nbytes
        arrays.append(array)
    if offset != len(view):
        raise errors.ProtocolError(
            f"Got {len(view)} bytes for a message of {offset} bytes."
        )
    return Frame(kind, meta, arrays)


def _describe(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    name = _encoded_name(dtype)
    rank = len(shape)
    if rank > MAX_RANK:
        raise ValueError(f"Got an array of rank {rank}, expected at most {MAX_RANK}.")
    return name + bytes([rank]) + _DIMENSIONS[rank].pack(*shape)


@functools.lru_cache(maxsize=256)
def _encoded_name(dtype: np.dtype) -> bytes:
    name = dtype_name(dtype).encode()
    return bytes([len(name)]) + name


def _bytes_of(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _read_descriptions(
    view: memoryview, count: int
) -> tuple[list[tuple[np.dtype, tuple[int, ...]]], int]:
    """Returns the dtype and shape of each array, and the offset of the JSON."""
    described = []
    offset = _HEAD.size
    try:
        for _ in range(count):
            rank_at = offset + 1 + view[offset]
            rank = view[rank_at]
            if rank > MAX_RANK:
                raise errors.ProtocolError(
                    f"Got an array of rank {rank}, expected at most {MAX_RANK}."
                )
            shape = _DIMENSIONS[rank].unpack_from(view, rank_at + 1)
            described.append((_dtype_of(view[offset + 1 : rank_at].tobytes()), shape))
            offset = rank_at + 1 + 8 * rank
    except (IndexError, struct.error):
        raise _too_short(view, offset) from None
    return described, offset


@functools.lru_cache(maxsize=256)
def _dtype_of(name: bytes) -> np.dtype:
    try:
        return dtype_from_name(name.decode("ascii"))
    except ValueError as error:
        raise errors.ProtocolError(str(error)) from None


def _too_short(view: memoryview, end: int) -> errors.ProtocolError:
    return errors.ProtocolError(
        f"Got a message of {len(view)} bytes, expected at least {end}."
    )


def _check_json(text: memoryview) -> None:
    """Checks the length of a request's JSON and the number of its values.

    Raises:
      ProtocolError: If one of them exceeds its limit.
    """
    if len(text) > MAX_JSON_BYTES:
        raise errors.ProtocolError(
            f"Got {len(text)} bytes of JSON in a message, expected at most "
            f"{MAX_JSON_BYTES}."
        )
    data = text.tobytes()
    # A comma or a bracket precedes each value. Counting them is faster than parsing.
    values = data.count(b",") + data.count(b"[") + data.count(b"{")
    if values > MAX_JSON_VALUES:
        raise errors.ProtocolError(
            f"Got {values} values in the JSON of a message, expected at most "
            f"{MAX_JSON_VALUES}."
        )


def _read_json(text: memoryview) -> dict[str, Any]:
    try:
        meta = json.loads(str(text, "utf-8"))
    except (ValueError, RecursionError) as error:
        raise errors.ProtocolError(
            f"Got a message with invalid JSON: {error}"
        ) from None
    if not isinstance(meta, dict):
        raise errors.ProtocolError(
            f"Got a {type(meta).__name__} as a message's JSON, expected an object."
        )
    return meta
