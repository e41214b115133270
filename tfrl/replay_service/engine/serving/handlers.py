"""The handlers of a session's messages, and their state between messages."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from tfrl.replay_service import errors
from tfrl.replay_service.engine.serving import control_requests
from tfrl.replay_service.engine.serving.requests import Caller, Request
from tfrl.replay_service.engine.serving.sample_requests import Sampler
from tfrl.replay_service.engine.serving.service import Service
from tfrl.replay_service.engine.serving.write_requests import WriterState
from tfrl.replay_service.transport import wire

_CONTROL: Mapping[int, Callable[[Service, Caller, wire.Frame], Request | None]] = {
    wire.INFO: control_requests.info,
    wire.RESET: control_requests.reset,
    wire.MUTATE: control_requests.mutate,
    wire.CHECKPOINT: control_requests.checkpoint,
}


class SessionHandlers:
    """Handles one session's messages, except for its greeting."""

    def __init__(self, service: Service, caller: Caller):
        """Creates the handlers of a session that has not received a greeting.

        Args:
          service: The state that all sessions share.
          caller: The session.
        """
        self._service = service
        self._caller = caller
        self._sampler: Sampler | None = None
        self._writer: WriterState | None = None
        self._handlers: Mapping[int, Callable[[wire.Frame], Request | None]] = {
            **{
                kind: functools.partial(handler, service, caller)
                for kind, handler in _CONTROL.items()
            },
            wire.SAMPLE: self._sample,
            wire.RELEASE: self._release,
            wire.WRITE: self._write,
        }

    def greet(self, hello: Mapping[str, Any]) -> dict[str, Any]:
        """Prepares for the client's role; returns extra fields for the welcome message.

        Args:
          hello: The JSON object of the client's greeting, which names its role.

        Raises:
          ProtocolError: If the writer's id is invalid.
        """
        if hello["role"] != "writer":
            return {}
        writer_id = hello.get("writer_id")
        self._writer = WriterState(self._service, self._caller, writer_id)
        return {"confirmed": self._writer.record.confirmed}

    def handles(self, kind: int) -> bool:
        """Returns whether there is a handler for messages of this kind."""
        return kind in self._handlers

    def handle(self, frame: wire.Frame) -> Request | None:
        """Handles a message; returns a request for unfinished work, or None.

        Raises:
          ProtocolError: If the message is malformed or not allowed for this client.
        """
        return self._handlers[frame.kind](frame)

    def close(self) -> None:
        """Releases the steps that are held for the client."""
        if self._sampler is not None:
            self._sampler.close()
        if self._writer is not None:
            self._writer.close()

    def _sample(self, frame: wire.Frame) -> Request | None:
        return self._sampling().request(frame.meta)

    def _release(self, frame: wire.Frame) -> None:
        self._sampling().release(frame.meta["release"])

    def _write(self, frame: wire.Frame) -> Request | None:
        if self._writer is None:
            raise errors.ProtocolError("Only sessions of role 'writer' can write.")
        return self._writer.request(frame)

    def _sampling(self) -> Sampler:
        if self._sampler is None:
            self._sampler = Sampler(self._service, self._caller)
        return self._sampler
