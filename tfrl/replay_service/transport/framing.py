"""Frames messages: on a stream of bytes, and as messages of gRPC.

On a Unix socket, a message is preceded by its length, in four bytes, little-endian.
Small buffers are joined before they are sent, and large messages are read into their
final memory, so no data is copied more than once.

Over gRPC, a client sends a message of up to `limits.PART_BYTES` as one message of gRPC.
A longer one is preceded by "TL" and its length in eight bytes, and sent in parts of
this size, because gRPC holds a whole message in memory before the server can refuse it.

A server passes the size of the largest message that it accepts now, which depends on
whether the client has sent a valid greeting.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.transport import limits, wire

_LENGTH = struct.Struct("<I")
_ANNOUNCEMENT = struct.Struct("<2sQ")  # Of a message in parts.
_IN_PARTS = b"TL"

Allocate = Callable[[int], np.ndarray]


def check_length(length: int) -> None:
    """Checks that a message of `length` bytes can be sent.

    Raises:
      ResourceExhaustedError: If the message is larger than `wire.MAX_FRAME`.
    """
    if length > wire.MAX_FRAME:
        raise errors.ResourceExhaustedError(
            f"Got {length} bytes to send, expected at most {wire.MAX_FRAME}."
        )


def split(buffers: Sequence[wire.Buffer]) -> Iterator[list[wire.Buffer]]:
    """Returns the messages of gRPC for a message, each as buffers to be joined.

    Args:
      buffers: The message, in parts, which must not change before they are sent.

    Raises:
      ResourceExhaustedError: If the message is larger than `wire.MAX_FRAME`.
    """
    length = sum(map(len, buffers))
    if length <= limits.PART_BYTES:
        return iter([list(buffers)])
    check_length(length)
    announcement: list[wire.Buffer] = [_ANNOUNCEMENT.pack(_IN_PARTS, length)]
    return itertools.chain([announcement], _parts(buffers))


def _parts(buffers: Sequence[wire.Buffer]) -> Iterator[list[wire.Buffer]]:
    part: list[wire.Buffer] = []
    room = limits.PART_BYTES
    for buffer in buffers:
        rest = memoryview(buffer)
        while len(rest):
            piece, rest = rest[:room], rest[room:]
            part.append(piece)
            room -= len(piece)
            if not room:
                yield part
                part, room = [], limits.PART_BYTES
    if part:
        yield part


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


def new_array(size: int) -> np.ndarray:
    """Returns an array of `size` bytes, uint8, whose contents are undefined."""
    # This writes no zeros, so the memory is used only as the bytes arrive.
    return np.empty(size, np.uint8)


class MessageReader:
    """Assembles messages from the bytes of a stream.

    Read bytes into `space()`, pass their number to `received`, and call `next_message`
    until it returns None.

    Attributes:
      expected: The size of the large message in transit; 0 without one.
    """

    def __init__(self, chunk_bytes: int, allocate: Allocate = new_array):
        """Creates a reader at the start of a stream.

        Args:
          chunk_bytes: The maximum number of bytes per read, except within a larger
            message.
          allocate: Returns memory for a large message.
        """
        self._allocate = allocate
        self._chunk = _memory_for(chunk_bytes, new_array)
        self.expected = 0
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

    def close(self) -> None:
        """Releases the memory. Nothing can be read after that."""
        self._chunk, self._large, self.expected = memoryview(b""), None, 0

    def next_message(self, most: int = wire.MAX_FRAME) -> wire.Buffer | None:
        """Returns the next complete message, or None if more bytes are needed.

        Args:
          most: The largest message to accept, in bytes.

        Raises:
          ProtocolError: If the next message is larger. Nothing can be read after that.
          ResourceExhaustedError: If there is no memory for the next message.
        """
        if self._large is not None:
            if self._large_end < len(self._large):
                return None
            message, self._large, self.expected = self._large, None, 0
            return message
        start = self._start + _LENGTH.size
        if start > self._end:
            return None
        (length,) = _LENGTH.unpack_from(self._chunk, self._start)
        if length > most:
            self._start = self._end = 0
            raise too_large(length, most)
        if start + length <= self._end:
            self._start = start + length
            return bytes(self._chunk[start : self._start])
        if length + _LENGTH.size > len(self._chunk):
            self._large = _memory_for(length, self._allocate)
            self.expected = length
            self._large_end = self._end - start
            self._large[: self._large_end] = self._chunk[start : self._end]
            self._start = self._end = 0
        return None


class PartReader:
    """Assembles messages from messages of gRPC; see `split`.

    Attributes:
      expected: The size of the message whose parts are in transit; 0 without one.
    """

    def __init__(self, allocate: Allocate = new_array):
        """Creates a reader at the start of a stream.

        Args:
          allocate: Returns memory for a large message.
        """
        self._allocate = allocate
        self.expected = 0
        self._large: memoryview | None = None
        self._end = 0

    def add(self, received: bytes, most: int = wire.MAX_FRAME) -> wire.Buffer | None:
        """Returns the complete message that `received` ends, or None if there is none.

        Args:
          received: A message of gRPC.
          most: The largest message to accept, in bytes.

        Raises:
          ProtocolError: If a message is larger, or the parts are longer than announced.
          ResourceExhaustedError: If there is no memory for the message.
        """
        if self._large is not None:
            end = self._end + len(received)
            if end > self.expected or not received:
                raise errors.ProtocolError(
                    f"Got {end} bytes of a message of {self.expected}."
                )
            self._large[self._end : end] = received
            self._end = end
            if end < self.expected:
                return None
            message, self._large, self.expected = self._large, None, 0
            return message
        length = len(received)
        in_parts = length == _ANNOUNCEMENT.size and received.startswith(_IN_PARTS)
        if in_parts:
            _, length = _ANNOUNCEMENT.unpack(received)
        if length > most:
            raise too_large(length, most)
        if not in_parts:
            return received
        self._large = _memory_for(length, self._allocate)
        self.expected, self._end = length, 0
        return None


def _memory_for(length: int, allocate: Allocate) -> memoryview:
    try:
        return memoryview(allocate(length).data)
    except MemoryError:
        raise errors.ResourceExhaustedError(
            f"There is not enough memory for a message of {length} bytes."
        ) from None


def too_large(length: int, most: int) -> errors.ProtocolError:
    """Returns the error for a message of `length` bytes, if at most `most` may come."""
    return errors.ProtocolError(
        f"Got a message of {length} bytes, expected at most {most}."
    )
