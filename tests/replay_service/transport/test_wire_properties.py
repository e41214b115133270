"""Messages of any contents come back, and damaged ones are one error."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl.replay_service import errors
from tfrl.replay_service.transport import framing, wire

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | properties.TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(properties.TEXTS, inner, max_size=3)
    ),
    max_leaves=6,
)
MESSAGES = st.tuples(
    st.integers(0, 255),
    st.dictionaries(properties.TEXTS, VALUES, max_size=3),
    st.lists(properties.arrays(), max_size=3),
)


def joined(message):
    return b"".join(bytes(buffer) for buffer in wire.encode(*message))


def assert_message(frame, message):
    kind, meta, arrays = message
    assert (frame.kind, frame.meta) == (kind, meta)
    for got, expected in zip(frame.arrays, arrays, strict=True):
        properties.assert_same(got, expected)


@given(MESSAGES)
def test_messages_come_back(message):
    assert_message(wire.decode(joined(message), is_request=True), message)


@given(MESSAGES, st.lists(st.integers(1, 400), min_size=1, max_size=20))
def test_a_message_without_its_last_bytes_is_an_error(message, numbers):
    whole = joined(message)
    for number in numbers:
        # What is after the last array fills a word.
        with contextlib.suppress(errors.ProtocolError):
            assert_message(wire.decode(whole[:-number], is_request=True), message)


@given(st.data(), MESSAGES)
def test_damaged_messages_are_an_error_or_another_message(data, message):
    bits = properties.damaged(data.draw, joined(message))
    try:
        frame = wire.decode(bits, is_request=True)
    except errors.ProtocolError:
        return
    assert sum(array.nbytes for array in frame.arrays) < len(bits)


@given(st.data(), st.lists(MESSAGES, max_size=4), st.integers(8, 80))
def test_messages_come_back_from_a_stream_in_any_pieces(data, messages, chunk):
    stream = b"".join(
        bytes(buffer)
        for message in messages
        for buffer in framing.pack(
            wire.encode(*message), data.draw(st.integers(0, 200))
        )
    )
    reader = framing.MessageReader(chunk, prefix=framing.MAGIC)
    rest, found = memoryview(framing.MAGIC + stream), []
    while rest:
        space = reader.space()
        size = min(len(space), len(rest), data.draw(st.integers(1, 90)))
        space[:size] = rest[:size]
        rest = rest[size:]
        reader.received(size)
        while (message := reader.next_message()) is not None:
            found.append(wire.decode(message))
    for frame, message in zip(found, messages, strict=True):
        assert_message(frame, message)
