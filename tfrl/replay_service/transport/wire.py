"""Messages as bytes: a kind, a JSON object, and arrays as flat buffers.

A frame is laid out as follows, all integers little-endian; nothing in it is ever
unpickled, and every length is held against the bytes that are there before it is used.

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

PROTOCOL = 1
TOKEN = "tfrl-token-bin"  # In the metadata of gRPC calls.
MAX_FRAME = 512 << 20  # Bytes.

_HEAD = struct.Struct("<2sBBIH")
_MAGIC = b"TR"
_MAX_RANK = 32
_MAX_ARRAYS = 4096
_ALIGNMENT = 8

_DIMENSIONS = [struct.Struct(f"<{rank}Q") for rank in range(_MAX_RANK + 1)]
_to_json = json.JSONEncoder(separators=(",", ":")).encode

Buffer = bytes | bytearray | memoryview


class Frame(NamedTuple):
    """A message that has come."""

    kind: int
    meta: dict[str, Any]
    arrays: list[np.ndarray]


def encode(
    kind: int,
    meta: Mapping[str, Any] | None = None,
    arrays: Sequence[np.ndarray] = (),
) -> list[Buffer]:
    """Returns a message as buffers, which put together are its bytes.

    Args:
      kind: One of this module's constants.
      meta: What `json` can write.
      arrays: Of any shapes, of numbers. They are not copied if they are contiguous: do
        not change them before the buffers have been sent.

    Raises:
      ValueError: If an array holds what is not of a fixed size, such as objects, or has
        more than 32 dimensions.
    """
    text = _to_json(meta).encode() if meta else b""
    head = [_HEAD.pack(_MAGIC, PROTOCOL, kind, len(text), len(arrays))]
    contiguous = []
    for array in arrays:
        # Not ascontiguousarray, which makes scalars vectors.
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


def decode(buffer: Buffer) -> Frame:
    """Returns the message that `buffer` holds, whose arrays are views of it.

    Raises:
      ProtocolError: If it holds no message, or more or less than one.
    """
    view = memoryview(buffer).toreadonly()
    if len(view) < _HEAD.size:
        raise errors.ProtocolError(
            f"A message of {len(view)} bytes came; {_HEAD.size} is the least."
        )
    magic, version, kind, text_length, count = _HEAD.unpack_from(view)
    if magic != _MAGIC or version != PROTOCOL:
        raise errors.ProtocolError(
            f"The message starts with {magic!r} {version}, expected {_MAGIC!r} "
            f"{PROTOCOL}: the other side speaks another protocol."
        )
    if count > _MAX_ARRAYS:
        raise errors.ProtocolError(f"{count} arrays in a message, over {_MAX_ARRAYS}.")
    described, offset = _read_descriptions(view, count)
    end = offset + text_length
    if end > len(view):
        raise _too_short(view, end)
    meta = _read_json(view[offset:end]) if text_length else {}
    offset = end
    arrays = []
    for dtype, shape in described:
        offset += -offset % _ALIGNMENT
        try:
            # Says itself whether the bytes are there.
            array = np.ndarray(shape, dtype, view, offset)
        except (TypeError, ValueError, OverflowError) as error:
            raise errors.ProtocolError(
                f"An array of {dtype} {shape} in a message of {len(view)} bytes, of "
                f"which {offset} come before it: {error}."
            ) from None
        offset += array.nbytes
        arrays.append(array)
    if offset != len(view):
        raise errors.ProtocolError(
            f"A message of {offset} bytes came in {len(view)} bytes."
        )
    return Frame(kind, meta, arrays)


def _describe(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    name = _encoded_name(dtype)
    rank = len(shape)
    if rank > _MAX_RANK:
        raise ValueError(f"An array of rank {rank}, over {_MAX_RANK}.")
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
    """Returns the dtype and shape of each array, and where in `view` they end."""
    described = []
    offset = _HEAD.size
    try:
        for _ in range(count):
            rank_at = offset + 1 + view[offset]
            rank = view[rank_at]
            if rank > _MAX_RANK:
                raise errors.ProtocolError(
                    f"An array of rank {rank}, over {_MAX_RANK}."
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
        f"A message ends after {len(view)} bytes, before the {end} that it speaks of."
    )


def _read_json(text: memoryview) -> dict[str, Any]:
    try:
        meta = json.loads(str(text, "utf-8"))
    except (ValueError, RecursionError) as error:
        raise errors.ProtocolError(f"A message's JSON is broken: {error}") from None
    if not isinstance(meta, dict):
        raise errors.ProtocolError(
            f"A message's JSON is a {type(meta).__name__}, expected an object."
        )
    return meta
