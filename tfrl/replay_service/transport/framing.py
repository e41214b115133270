"""Frames messages on a stream of bytes: the length in four bytes, then the message.

The length is little-endian. Both the client and the server use this format on a Unix
socket. Small buffers are joined before they are sent, and large messages are read into
their final memory, so no data is copied more than once.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.transport import wire

_LENGTH = struct.Struct("<I")


def check_length(length: int) -> None:
    """Checks that a message of `length` bytes can be sent.

    Raises:
      ResourceExhaustedError: If the message is larger than `wire.MAX_FRAME`.
    """
    if length > wire.MAX_FRAME:
        raise errors.ResourceExhaustedError(
            f"Got {length} bytes to send, expected at most {wire.MAX_FRAME}."
        )


def pack(buffers: Sequence[wire.Buffer], joined: int) -> list[wire.Buffer]:
    """Returns the buffers to send for a message, in order.

    Args:
      buffers: The message, in parts.
      joined: Adjacent buffers of at most this many bytes are copied into one buffer;
        larger buffers are returned without a copy.

    Raises:
      ResourceExhaustedError: If the message is larger than `wire.MAX_FRAME`.
    """
    length = sum(map(len, buffers))
    check_length(length)
    small: list[wire.Buffer] = [_LENGTH.pack(length)]
    if length <= joined:
        return [b"".join([*small, *buffers])]
    packed: list[wire.Buffer] = []
    for buffer in buffers:
        if len(buffer) <= joined:
            small.append(buffer)
            continue
        if small:
            packed.append(b"".join(small))
            small = []
        packed.append(buffer)
    if small:
        packed.append(b"".join(small))
    return packed


class MessageReader:
    """Assembles messages from the bytes of a stream.

    Read bytes into `space()`, pass their number to `received`, and call `next_message`
    until it returns None.
    """

    def __init__(self, chunk_bytes: int):
        """Creates a reader at the start of a stream.

        Args:
          chunk_bytes: The maximum number of bytes per read, except within a larger
            message.
        """
        self._chunk = memoryview(bytearray(chunk_bytes))
        self._start = self._end = 0  # The unused part of the chunk.
        self._large: memoryview | None = None  # A large message in transit.
        self._large_end = 0

    def space(self) -> memoryview:
        """Returns the memory for the next bytes, at least one byte."""
        if self._large is not None:
            return self._large[self._large_end :]
        if self._start:
            rest = self._end - self._start
            if rest:
                self._chunk[:rest] = bytes(self._chunk[self._start : self._end])
            self._start, self._end = 0, rest
        return self._chunk[self._end :]

    def received(self, count: int) -> None:
        """Records that `count` bytes were written to `space()`."""
        if self._large is not None:
            self._large_end += count
        else:
            self._end += count

    def next_message(self) -> wire.Buffer | None:
        """Returns the next complete message, or None if more bytes are needed.

        Raises:
          ProtocolError: If the next message is larger than `wire.MAX_FRAME`. Nothing
            can be read after that.
        """
        if self._large is not None:
            if self._large_end < len(self._large):
                return None
            message, self._large = self._large, None
            return message
        start = self._start + _LENGTH.size
        if start > self._end:
            return None
        (length,) = _LENGTH.unpack_from(self._chunk, self._start)
        if length > wire.MAX_FRAME:
            self._start = self._end = 0
            raise errors.ProtocolError(
                f"Got a message of {length} bytes, expected at most {wire.MAX_FRAME}."
            )
        if start + length <= self._end:
            self._start = start + length
            return bytes(self._chunk[start : self._start])
        if length + _LENGTH.size > len(self._chunk):
            # np.empty does not write zeros first.
            self._large = memoryview(np.empty(length, np.uint8).data)
            self._large_end = self._end - start
            self._large[: self._large_end] = self._chunk[start : self._end]
            self._start = self._end = 0
        return None
