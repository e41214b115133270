"""A replay server whose event loop measures its turns, for `benchmarks.service_turns`.

A turn is the time between two calls of the loop's `select`: the callbacks that run
together, while no other client is served. It is measured in processor time of the
server's thread (`time.thread_time`), so other processes do not change it.

The configuration is the first line of standard input, and the server's port the first
line of standard output. Each further line asks for the longest turn since the line
before, and is answered by a line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import selectors
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from tfrl.replay_service.engine.serving import main, protocols, requests
from tfrl.replay_service.transport import wire

_KINDS = {
    value: name.lower()
    for name, value in vars(wire).items()
    if name.isupper() and type(value) is int and name not in ("PROTOCOL", "MAX_FRAME")
}


class Turns:
    """The longest turn, and the work that was done in it."""

    def __init__(self) -> None:
        """Starts with the first turn."""
        self._kinds: list[str] = []
        self._start: float | None = None
        self._longest = 0.0
        self._longest_kinds: list[str] = []
        self._count = 0

    def note(self, kind: str) -> None:
        """Notes that a request of this kind was worked on in this turn."""
        if kind not in self._kinds:
            self._kinds.append(kind)

    def end(self) -> None:
        """Ends the current turn."""
        if self._start is None:
            return
        seconds = time.thread_time() - self._start
        self._count += 1
        if seconds > self._longest:
            self._longest, self._longest_kinds = seconds, list(self._kinds)

    def begin(self) -> None:
        """Begins the next turn."""
        self._kinds.clear()
        self._start = time.thread_time()

    def report(self) -> dict[str, Any]:
        """Returns the longest turn since the last call, as a JSON object."""
        result = {
            "milliseconds": 1e3 * self._longest,
            "kinds": self._longest_kinds,
            "turns": self._count,
        }
        self._longest, self._longest_kinds, self._count = 0.0, [], 0
        return result


class TimedSelector(selectors.DefaultSelector):
    """A selector that tells `Turns` when the loop waits."""

    def __init__(self, turns: Turns) -> None:
        """Creates the selector.

        Args:
          turns: The measurement.
        """
        super().__init__()
        self._turns = turns

    def select(self, timeout: float | None = None) -> Any:
        """Waits for events; the turn ends before, and the next one begins after."""
        self._turns.end()
        events = super().select(timeout)
        self._turns.begin()
        return events


def note_requests(note: Callable[[str], None]) -> None:
    """Makes `note` be called with the kind of each message and request worked on."""
    handle = protocols.SessionHandlers.handle

    def noted_handle(self: protocols.SessionHandlers, frame: wire.Frame) -> Any:
        note(_KINDS[frame.kind])
        return handle(self, frame)

    protocols.SessionHandlers.handle = noted_handle  # type: ignore[method-assign]
    for kind in _subclasses(requests.Request):
        if "advance" in vars(kind):
            kind.advance = _noted(kind, note)


def _subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    for child in kind.__subclasses__():
        yield child
        yield from _subclasses(child)


def _noted(kind: type[Any], note: Callable[[str], None]) -> Callable[..., Any]:
    advance = kind.advance

    def noted_advance(self: requests.Request, woken: bool) -> Any:
        note(kind.__name__)
        return advance(self, woken)

    return noted_advance


def serve() -> None:
    """Serves until standard input ends."""
    config = json.loads(sys.stdin.readline())
    turns = Turns()
    note_requests(turns.note)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()

        def report() -> None:
            # The turn that answered the last request has ended now.
            print(json.dumps(turns.report()), flush=True)

        def answer() -> None:
            for _ in sys.stdin:
                loop.call_soon_threadsafe(report)
            loop.call_soon_threadsafe(stop.set)

        def announce(port: int, _directory: str | None) -> None:
            print(port, flush=True)
            threading.Thread(target=answer, daemon=True).start()

        await main.run(config, announce, stop)

    def make_loop() -> asyncio.AbstractEventLoop:
        return asyncio.SelectorEventLoop(TimedSelector(turns))

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(run())


if __name__ == "__main__":
    serve()
