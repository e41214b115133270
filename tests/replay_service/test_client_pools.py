"""Requests do not wait for each other, and keep to their own time."""

import gc
import os
import threading
import traceback

import pytest

from tfrl.replay_service import client_pools, errors
from tfrl.replay_service.transport import connection, wire


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

    return client_pools.ControlConnections(connect)


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


def test_what_was_kept_last_is_taken_first():
    closed = []
    pool = client_pools.IdlePool(closed.append)
    assert pool.take() is None
    for i in range(6):
        pool.keep(i)
    assert closed == [4, 5]
    assert pool.take() == 3
    pool.clear()
    assert sorted(closed) == [0, 1, 2, 4, 5]
    assert pool.take() is None


# Forking a process with threads is what is tested; Python 3.12 and later warn of it.
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_starts_empty_with_a_lock_of_its_own():
    closed = []
    pool = client_pools.IdlePool(closed.append)
    pool.keep(1)
    held, done = threading.Event(), threading.Event()

    def hold():
        with pool._lock:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    child = os.fork()
    if not child:
        try:
            assert pool._lock.acquire(blocking=False)
            assert (pool.take(), closed) == (None, [])
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    done.set()
    thread.join(10)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pool.take() == 1


@pytest.mark.slow
def test_the_collector_can_close_a_generator_while_connections_are_shared_out(client):
    for i in range(2):
        client.insert(i, {"any": 1.0})
    samples = client_pools.ClientSamples(client.server_address, {})

    class Collecting(list):
        def __len__(self):
            gc.collect()
            return super().__len__()

    samples._idle._idle = Collecting()
    generator = samples.draw("any", 1)
    cycle = [generator]
    cycle.append(cycle)
    next(generator)
    del generator, cycle
    drawn = []
    thread = threading.Thread(
        target=lambda: drawn.extend(samples.draw("any", 1)), daemon=True
    )
    thread.start()
    thread.join(10)
    assert [data[0].tolist() for _, data in drawn] == [[1]]
