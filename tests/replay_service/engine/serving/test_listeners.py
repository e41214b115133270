"""Connections that nobody uses do not stay; large messages are sent in turns."""

import asyncio
import contextlib
import socket
import time

import pytest

from tfrl.replay_service import errors, rate_limiters
from tfrl.replay_service import item_selectors as selectors
from tfrl.replay_service.engine.serving import descriptors, listeners
from tfrl.replay_service.engine.serving.service import Service
from tfrl.replay_service.engine.storage import memory
from tfrl.replay_service.table import Table
from tfrl.replay_service.transport import connection, framing


def open_ones(connections):
    """Returns the `connections` that the server has not closed."""
    still = []
    for one in connections:
        one.setblocking(False)
        with contextlib.suppress(ConnectionError):
            with contextlib.suppress(BlockingIOError):
                while one.recv(1 << 16):
                    pass  # A server of HTTP/2 speaks first.
                continue
            still.append(one)
    return still


async def until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def test_silent_connections_are_few_and_soon_closed(monkeypatch):
    fifo = selectors.Fifo()
    table = Table("t", fifo, fifo, 100, rate_limiters.MinSize(1))
    patience = ("grpc.server_handshake_timeout_ms", 1_000)
    options = [o for o in listeners._OPTIONS if o[0] != patience[0]]
    assert len(options) == len(listeners._OPTIONS) - 1
    monkeypatch.setattr(listeners, "_OPTIONS", (*options, patience))
    monkeypatch.setattr(descriptors, "raise_limit", lambda: 10)

    async def serve():
        service = Service([table.to_config()], shared=False)
        server, port = await listeners.listen_to_grpc(service, "127.0.0.1", 0, None)
        connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(12)]
        await until(lambda: len(open_ones(connections)) <= 5)
        await until(lambda: not open_ones(connections))
        link = await asyncio.to_thread(
            connection.connect, f"localhost:{port}", "control", timeout=10
        )
        assert list(link.welcome["tables"]) == ["t"]
        link.close()
        for one in connections:
            one.close()
        await server.stop(None)

    asyncio.run(serve())


class Context:
    """A call of gRPC whose client neither sends nor reads."""

    async def read(self):
        await asyncio.Event().wait()

    write = read

    def peer(self):
        return "ipv4:192.0.2.1:1"


def test_what_no_client_reads_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(listeners, "_ALL_UNSENT", 1_000_000)
    monkeypatch.setattr(memory, "available", lambda: 1 << 30)

    async def serve():
        service = Service([], shared=False)
        sinks = [listeners.GrpcSink(service, Context()) for _ in range(2)]
        calls = [asyncio.create_task(sink.run()) for sink in sinks]
        for sink in sinks:
            sink.send([bytes(600_000)])
        monkeypatch.setattr(memory, "available", lambda: 0)
        with pytest.raises(errors.ResourceExhaustedError, match="not enough memory"):
            sinks[1].send([bytes(600_000)])
        sinks[1].send([b"an error"])
        assert service.unsent == 1_200_008
        await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        assert service.unsent == 0

    asyncio.run(serve())


class _Transport:
    """A transport whose client reads everything at once."""

    def __init__(self):
        self.written = []
        self.closed = False

    def write(self, data):
        self.written.append(bytes(data))

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    def pause_reading(self):
        pass

    def abort(self):
        pass

    def get_extra_info(self, name):
        return socket.socket(socket.AF_UNIX)

    def set_write_buffer_limits(self, high):
        pass


@pytest.mark.parametrize("closes", [False, True])
def test_a_large_message_is_sent_in_turns_also_to_a_client_that_reads_fast(closes):
    message = [bytes([i]) * (3 << 20) for i in range(3)]
    later = [b"later" * 10]

    async def turns():
        service = Service([], shared=False)
        protocol = listeners.LocalProtocol(service)
        transport = _Transport()
        protocol.connection_made(transport)
        protocol.send(message)
        protocol.send(later)
        if closes:
            protocol.close()
        sent = [len(b"".join(transport.written))]
        while sent[-1] < 9 << 20:
            assert not transport.closed
            await asyncio.sleep(0)
            sent.append(len(b"".join(transport.written)))
        assert max(b - a for a, b in zip([0, *sent], sent, strict=False)) <= 1 << 19
        await asyncio.sleep(0)
        assert transport.closed == closes
        return b"".join(transport.written)

    framed = [*framing.pack(message, 1 << 16), *framing.pack(later, 1 << 16)]
    assert asyncio.run(turns()) == b"".join(framed)
