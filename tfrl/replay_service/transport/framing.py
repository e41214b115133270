"""Frames messages on a stream of bytes.

A message is preceded by its length, in four bytes, little-endian. Small buffers are
joined before they are sent, and large messages are read into their final memory, so no
data is copied more than once.

A server passes the size of the largest message that it accepts now, which depends on
whether the client has sent a valid greeting.

Over TCP, a preamble comes before the messages: a client sends `MAGIC`, and 32 bytes
that prove that it knows the server's token. The server reads nothing else before it has
checked them. It answers with `MAGIC`, which tells it apart from other servers. With
TLS, all of this is encrypted.

>>> from tfrl.replay_service.transport import framing
>>> first = framing.preamble_of_client("a token")
>>> len(first) == framing.PREAMBLE_SIZE, first[:4]
(True, b'TFRL')
>>> framing.preamble_of_client(None)[4:] == framing.NO_TOKEN
True
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Callable, Sequence

import numpy as np

from tfrl.replay_service import errors
from tfrl.replay_service.transport import wire

MAGIC = b"TFRL"
NO_TOKEN = bytes(32)
PREAMBLE_SIZE = len(MAGIC) + len(NO_TOKEN)
_PURPOSE = b"tfrl replay service"

_LENGTH = struct.Struct("<I")

Allocate = Callable[[int], np.ndarray]


def preamble_of_client(token: str | None) -> bytes:
    """Returns the first bytes of a client with this token, which may be None."""
    return MAGIC + (NO_TOKEN if token is None else token_digest(token))


def token_digest(token: str) -> bytes:
    """Returns the 32 bytes that stand for a token."""
    # The token is no key, since keys that differ in zeros at their end are the same.
    return hmac.digest(_PURPOSE, token.encode(), "sha256")


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


def new_array(size: int) -> np.ndarray:
    """Returns an array of `size` bytes, uint8, whose contents are undefined."""
    # This writes no zeros, so the memory is used only as the bytes arrive.
    return np.empty(size, np.uint8)


class MessageReader:
    """Assembles messages from the bytes of a stream.

    Read bytes into `space()`, pass their number to `received`, and call `next_message`
    until it returns None.

    Attributes:
      expected: The size of the large message in transit; 0 if there is none.
    """

    def __init__(
        self, chunk_bytes: int, allocate: Allocate = new_array, prefix: bytes = b""
    ):
        """Creates a reader at the start of a stream.

        Args:
          chunk_bytes: The maximum number of bytes per read, except within a larger
            message.
          allocate: Returns memory for a large message.
          prefix: The bytes that come before the first message.
        """
        self._prefix = prefix
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
          ProtocolError: If the next message is larger, or the stream does not begin
            with the expected bytes. Nothing can be read after that.
          ResourceExhaustedError: If there is no memory for the next message.
        """
        if self._prefix and not self._passed_prefix():
            return None
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

    def _passed_prefix(self) -> bool:
        first = bytes(self._chunk[: min(self._end, len(self._prefix))])
        if not self._prefix.startswith(first):
            raise errors.ProtocolError(
                "The server at this address is not a tfrl replay service."
            )
        if len(first) < len(self._prefix):
            return False
        self._start, self._prefix = len(first), b""
        return True


def _memory_for(length: int, allocate: Allocate) -> memoryview:
    try:
        return memoryview(allocate(length).data)
    except MemoryError:
        raise errors.ResourceExhaustedError(
            f"There is not enough memory for a message of {length} bytes."
        ) from None


def too_large(length: int, most: int) -> errors.ProtocolError:
    """Returns the error for a message of `length` bytes, with `most` allowed."""
    return errors.ProtocolError(
        f"Got a message of {length} bytes, expected at most {most}."
    )
