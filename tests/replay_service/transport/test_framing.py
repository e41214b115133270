"""Messages on a stream of bytes arrive whole, however the stream is cut."""

import itertools
import random

import numpy as np
import pytest

from tfrl.replay_service import errors
from tfrl.replay_service.transport import framing, wire

CHUNK = 64


def read_all(data, pieces):
    """Feeds bytes to a reader, so many at a time; returns the messages."""
    reader = framing.MessageReader(CHUNK)
    messages = []
    at = 0
    for size in pieces:
        while size and at < len(data):
            space = reader.space()
            assert len(space)
            count = min(size, len(space), len(data) - at)
            space[:count] = data[at : at + count]
            reader.received(count)
            at += count
            size -= count
            while (message := reader.next_message()) is not None:
                messages.append(bytes(message))
        if at == len(data):
            return messages


@pytest.mark.parametrize("piece", [1, 3, 4, 5, 63, 64, 65, 1000])
def test_messages_of_all_sizes_arrive_whole(piece):
    source = random.Random(piece)
    sizes = [0, 1, CHUNK - 5, CHUNK - 4, CHUNK - 3, CHUNK, 5 * CHUNK, 0, 2, 2]
    messages = [source.randbytes(size) for size in sizes * 3]
    data = b"".join(itertools.chain(*(framing.pack([m], 16) for m in messages)))
    assert read_all(data, itertools.repeat(piece)) == messages
    assert read_all(data, iter(lambda: source.randint(1, 200), None)) == messages


def test_small_buffers_are_joined_and_large_ones_are_not_copied():
    large = np.arange(100, dtype=np.uint8).data
    packed = framing.pack([b"ab", b"cd", large, b"ef", large, large, b"g"], joined=8)
    assert packed[1] is large
    assert packed[3] is packed[4] is large
    lead, *small = (bytes(packed[i]) for i in (0, 2, 5))
    assert lead == (307).to_bytes(4, "little") + b"abcd"
    assert small == [b"ef", b"g"]
    assert framing.pack([b"ab", b"cd"], joined=8) == [b"\4\0\0\0abcd"]


def test_a_message_that_is_too_large_is_not_sent(monkeypatch):
    monkeypatch.setattr(wire, "MAX_FRAME", 10)
    assert framing.pack([b"12345", b"67890"], joined=4)
    with pytest.raises(errors.ResourceExhaustedError, match="Got 11 bytes"):
        framing.pack([b"12345", b"678901"], joined=4)


def test_a_message_that_is_too_large_is_not_read():
    reader = framing.MessageReader(CHUNK)
    data = b"\1\0\0\0x" + (wire.MAX_FRAME + 1).to_bytes(4, "little")
    reader.space()[: len(data)] = data
    reader.received(len(data))
    assert reader.next_message() == b"x"
    with pytest.raises(
        errors.ProtocolError, match=r"Got a message of .* bytes, expected at most"
    ):
        reader.next_message()
    assert len(reader.space()) == CHUNK


def test_a_server_reads_no_more_than_it_accepts_now():
    reader = framing.MessageReader(CHUNK)
    data = b"\x40\0\0\0" + bytes(64)
    reader.space()[: len(data[:CHUNK])] = data[:CHUNK]
    reader.received(CHUNK)
    with pytest.raises(
        errors.ProtocolError, match="message of 64 bytes, expected at most 63"
    ):
        reader.next_message(63)


def test_the_size_of_a_large_message_is_known_until_it_is_complete():
    reader = framing.MessageReader(CHUNK)
    data = (2 * CHUNK).to_bytes(4, "little") + bytes(2 * CHUNK)
    reader.space()[:CHUNK] = data[:CHUNK]
    reader.received(CHUNK)
    assert reader.expected == 0
    assert reader.next_message() is None
    assert reader.expected == 2 * CHUNK
    rest = reader.space()
    assert len(rest) == CHUNK + 4
    reader.received(len(rest))
    assert len(reader.next_message()) == 2 * CHUNK
    assert reader.expected == 0
    reader.close()
    assert not len(reader.space())


def test_memory_that_is_refused_is_an_error_of_the_service(monkeypatch):
    def refuse(*_):
        raise MemoryError

    reader = framing.MessageReader(CHUNK)
    monkeypatch.setattr(np, "empty", refuse)
    reader.space()[:4] = (2 * CHUNK).to_bytes(4, "little")
    reader.received(4)
    with pytest.raises(errors.ResourceExhaustedError, match="not enough memory"):
        reader.next_message()


@pytest.mark.parametrize("pieces", [[8], [1, 3, 4], [4, 4], [2, 6]])
def test_the_prefix_of_a_stream_is_expected_before_the_first_message(pieces):
    reader = framing.MessageReader(CHUNK, prefix=b"TFRL")
    data = b"TFRL\0\0\0\0"
    messages = []
    for size in pieces:
        reader.space()[:size] = data[:size]
        data = data[size:]
        reader.received(size)
        messages.append(reader.next_message())
    assert messages == [None] * (len(pieces) - 1) + [b""]


@pytest.mark.parametrize("data", [b"H", b"TFR?", b"\0\0\x12\4\0\0\0\0"])
def test_another_beginning_is_told_at_once(data):
    reader = framing.MessageReader(CHUNK, prefix=b"TFRL")
    assert reader.next_message() is None
    reader.space()[: len(data)] = data
    reader.received(len(data))
    with pytest.raises(errors.ProtocolError, match="not a tfrl replay service"):
        reader.next_message()


def test_each_token_has_bytes_of_its_own():
    tokens = (None, "", "\0", "a", "a\0", "b", "nö", "a" * 99)
    made = [framing.preamble_of_client(token) for token in tokens]
    assert len(set(made)) == len(made)
    for first in made:
        assert first.startswith(framing.MAGIC)
        assert len(first) == framing.PREAMBLE_SIZE
    assert framing.preamble_of_client("a") == framing.MAGIC + framing.token_digest("a")
    assert b"a" * 9 not in made[-1]
