"""Requests do not wait for each other, and keep to their own time."""

import threading

import pytest

from tfrl.replay_service import errors
from tfrl.replay_service.transport import connection, control_connections, wire


class _Stream:
    """Answers each request, except for CHECKPOINT, which waits for `go_on`."""

    def __init__(self, go_on):
        self.closed = False
        self._go_on = go_on
        self._kind = None

    def send(self, buffers):
        self._kind = wire.decode(b"".join(buffers)).kind

    def receive(self, timeout):
        if self._kind == wire.CHECKPOINT and not self._go_on.wait(timeout):
            return None
        return b"".join(wire.encode(wire.OK, {"kind": self._kind}))

    def close(self):
        self.closed = True


@pytest.fixture
def go_on():
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def streams():
    """The streams that were opened."""
    return []


@pytest.fixture
def control(go_on, streams):
    def connect(_):
        streams.append(_Stream(go_on))
        return connection.Connection(streams[-1], {"tables": {}}, "address", False)

    return control_connections.ControlConnections(connect)


def test_a_request_does_not_wait_for_another_thread_s(control, go_on, streams):
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(control.request(wire.CHECKPOINT, {}))
    )
    thread.start()
    # Would wait for ever if it waited for the checkpoint.
    assert control.request(wire.MUTATE, {}) == {"kind": wire.MUTATE}
    assert control.request(wire.INFO, {}, timeout=10) == {"kind": wire.INFO}
    assert control.tables() == {}
    go_on.set()
    thread.join(10)
    assert answers == [{"kind": wire.CHECKPOINT}]
    assert len(streams) == 2


def test_the_connection_of_a_late_answer_is_not_used_again(control, streams):
    with pytest.raises(errors.DeadlineExceededError, match="did not answer in time"):
        control.request(wire.CHECKPOINT, {}, timeout=0.01)
    assert streams[0].closed
    assert control.request(wire.INFO, {}) == {"kind": wire.INFO}
    assert len(streams) == 2


def test_without_time_nothing_is_connected(control, streams):
    with pytest.raises(errors.DeadlineExceededError, match="No server answered"):
        control.request(wire.INFO, {}, timeout=0)
    assert not streams
