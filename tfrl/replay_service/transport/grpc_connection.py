"""A stream of messages over gRPC, to any host."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from typing import Any

import grpc

from tfrl.replay_service import errors
from tfrl.replay_service.transport import framing, wire

METHOD = "/tfrl.Replay/Session"

_OPTIONS = (
    ("grpc.max_send_message_length", wire.MAX_FRAME),
    ("grpc.max_receive_message_length", wire.MAX_FRAME),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    # `connect` decides when to try again. If channels shared connections, they would
    # also share gRPC's pauses after failures, of up to two minutes.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
)


class GrpcStream:
    """A stream of messages over one bidirectional call.

    A thread waits for messages, because gRPC cannot wait with a time limit.
    """

    def __init__(self, address: str, tls: bytes | None, token: str | None = None):
        """Starts a call. The first `receive` fails if no server answers.

        Args:
          address: "host:port".
          tls: Root certificates (PEM) that verify the server's certificate; empty for
            the system's root certificates; None for an unencrypted connection.
          token: The server's token, if it has one.
        """
        if tls is None:
            self._channel = grpc.insecure_channel(address, _OPTIONS)
        else:
            credentials = grpc.ssl_channel_credentials(tls or None)
            self._channel = grpc.secure_channel(address, credentials, _OPTIONS)
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._incoming: queue.SimpleQueue[wire.Buffer | Exception] = queue.SimpleQueue()
        self._failure: Exception | None = None
        start = self._channel.stream_stream(METHOD)
        metadata = () if token is None else ((wire.TOKEN, token.encode()),)
        self._call = start(iter(self._outgoing.get, None), metadata=metadata)
        reader = threading.Thread(
            target=_read,
            args=(self._channel, self._call, self._incoming),
            daemon=True,
        )
        try:
            reader.start()
        except RuntimeError:  # No more threads can start.
            self.close()
            self._channel.close()
            raise

    def send(self, buffers: Sequence[wire.Buffer]) -> None:
        """Passes a message to gRPC.

        Args:
          buffers: The message, in parts.

        Raises:
          ConnectionLost: If the connection is lost.
          ResourceExhaustedError: If the message is larger than `wire.MAX_FRAME`.
        """
        if self._failure is not None:
            raise self._failure
        for part in framing.split(buffers):
            self._outgoing.put(b"".join(part))

    def pump(self) -> bool:
        """Returns whether gRPC has taken all messages; gRPC then sends them itself."""
        return self._outgoing.empty()

    def receive(self, timeout: float | None) -> wire.Buffer | None:
        """Returns the next message, or None after `timeout` seconds.

        Args:
          timeout: The number of seconds to wait; None for no limit.

        Raises:
          ConnectionLost: If the connection is lost.
        """
        if self._failure is not None:
            raise self._failure
        try:
            if timeout is not None and timeout <= 0:
                message = self._incoming.get_nowait()
            else:
                message = self._incoming.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(message, Exception):
            self._failure = message
            raise message
        return message

    def close(self) -> None:
        """Ends the call, and all threads soon after it. Never waits."""
        self._outgoing.put(None)
        self._call.cancel()


def _read(
    channel: Any, call: Any, incoming: queue.SimpleQueue[wire.Buffer | Exception]
) -> None:
    """Receives messages until the call ends; then closes its channel.

    Closing a channel waits for gRPC's threads, in each of which the garbage collector
    may end a stream. So only this thread does it.
    """
    reader = framing.PartReader()
    try:
        for part in call:
            message = reader.add(part)
            if message is not None:
                incoming.put(message)
        incoming.put(errors.ConnectionLost("The server closed the connection."))
    except grpc.RpcError as error:
        incoming.put(_lost(error))
    except Exception as error:  # After any error, no more messages arrive.
        incoming.put(errors.ConnectionLost(f"The connection broke: {error!r}."))
    finally:
        channel.close()


def _lost(error: Any) -> Exception:
    code = error.code() if hasattr(error, "code") else None
    details = error.details() if hasattr(error, "details") else str(error)
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return errors.ConnectionLost(
            "The server at this address speaks gRPC, but is no replay service of tfrl."
        )
    if code == grpc.StatusCode.UNAUTHENTICATED:
        return errors.AuthenticationError(str(details))
    if code == grpc.StatusCode.RESOURCE_EXHAUSTED:
        return errors.ResourceExhaustedError(f"gRPC refused a message: {details}.")
    name = code.name if code is not None else "no status"
    return errors.ConnectionLost(f"gRPC reports {name}: {details}.")
