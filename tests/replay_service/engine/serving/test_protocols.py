"""Large messages are sent in turns, and what nobody reads does not fill the memory."""

import asyncio
import socket

import pytest

from tfrl.replay_service import errors
from tfrl.replay_service.engine.serving import protocols
from tfrl.replay_service.engine.serving.service import Service
from tfrl.replay_service.engine.storage import memory
from tfrl.replay_service.transport import framing


class _Transport:
    """A transport whose client reads everything at once, or nothing."""

    def __init__(self, reads=True):
        self.reads = reads
        self.written = []
        self.closed = False

    def write(self, data):
        self.written.append(bytes(data))

    def get_write_buffer_size(self):
        return 0 if self.reads else sum(map(len, self.written))

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    def write_eof(self):
        self.closed = True

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass

    def abort(self):
        pass

    def get_extra_info(self, name):
        return socket.socket()

    def set_write_buffer_limits(self, high):
        pass


def make_protocol(service, is_local):
    if is_local:
        return protocols.LocalProtocol(service)
    scratch = memoryview(bytearray(1 << 18))
    return protocols.RemoteProtocol(service, "a host", None, scratch, lambda _: None)


def test_what_no_client_reads_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(protocols, "_ALL_UNSENT", 1_000_000)
    monkeypatch.setattr(memory, "available", lambda: 1 << 30)

    async def serve():
        service = Service([], shared=False)
        clients = [make_protocol(service, is_local=False) for _ in range(2)]
        for client in clients:
            client.connection_made(_Transport(reads=False))
            client.send([bytes(600_000)])
        before = service.unsent
        assert before >= 1_200_000
        monkeypatch.setattr(memory, "available", lambda: 0)
        with pytest.raises(errors.ResourceExhaustedError, match="not enough memory"):
            clients[1].send([bytes(600_000)])
        clients[1].send([b"an error"])
        assert before < service.unsent < before + 100
        for client in clients:
            client.connection_lost(None)
        assert service.unsent == 0

    asyncio.run(serve())


def test_a_client_that_left_first_ends_its_connection_alone():
    class Gone(_Transport):
        def write_eof(self):
            raise OSError(107, "Transport endpoint is not connected")

        def abort(self):
            self.closed = True

    async def close():
        service = Service([], shared=False)
        protocol = make_protocol(service, is_local=False)
        transport = Gone()
        protocol.connection_made(transport)
        (session,) = service.sessions
        session.close()
        assert transport.closed

    asyncio.run(close())


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize("closes", [False, True])
def test_a_large_message_is_sent_in_turns_also_to_a_client_that_reads_fast(
    closes, is_local
):
    message = [bytes([i]) * (3 << 20) for i in range(3)]
    later = [b"later" * 10]

    async def turns():
        service = Service([], shared=False)
        protocol = make_protocol(service, is_local)
        transport = _Transport()
        protocol.connection_made(transport)
        protocol.send(message)
        protocol.send(later)
        if closes:
            protocol.close()
        sent = [len(b"".join(transport.written))]
        assert transport.written[0] == framing.MAGIC or is_local
        while sent[-1] < 9 << 20:
            assert not transport.closed
            await asyncio.sleep(0)
            sent.append(len(b"".join(transport.written)))
        assert max(b - a for a, b in zip([0, *sent], sent, strict=False)) <= 1 << 19
        await asyncio.sleep(0)
        assert transport.closed == closes
        return b"".join(transport.written)

    framed = [*framing.pack(message, 1 << 16), *framing.pack(later, 1 << 16)]
    first = b"" if is_local else framing.MAGIC
    assert asyncio.run(turns()) == first + b"".join(framed)
