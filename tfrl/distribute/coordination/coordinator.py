"""The coordinator of a run whose processes are on several hosts.

It is a replay server with two tables of JSON texts. So it has the transport, the token
and the limits of every replay server, and nothing that it receives is unpickled. It
imports no TensorFlow.

- `notes`: the workers' messages about their own state, one every second. The
  coordinator takes each note once, and ignores notes that it does not expect, such as
  notes of another version of tfrl.
- `board`: the version of tfrl, the run's settings, the newest process of each task with
  its address, the newest group of learners, and the roles that must stop. Workers read
  it when it has changed.

Each worker has a session, which changes whenever the process or its work starts again.
So the board always holds the address of the newest server.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tfrl import replay_service, version
from tfrl.distribute import replay_servers
from tfrl.distribute.process_roles import LEARNER, Task
from tfrl.replay_service.transport import addresses
from tfrl.system import supervisor

_LOGGER = logging.getLogger("tfrl.distribute")
NOTES, BOARD = "notes", "board"
_PERIOD = 0.2  # Seconds between looks at the notes.
_MOST_NOTES = 100_000
_TIMEOUT = 5.0  # Seconds for the server, a child of this process, to answer.
_NOTHING = type(None)
# The fields of a note, and the types that they may have.
_FIELDS: dict[str, tuple[type, ...]] = {
    "task": (str,),
    "session": (str,),
    "host": (str,),
    "pid": (int,),
    "is_new": (bool,),
    "address": (str, _NOTHING),
    "peer": (str, _NOTHING),
    "ending": (dict, _NOTHING),
}
# The fields of its ending, after a result and after an exception.
_ENDINGS: tuple[dict[str, tuple[type, ...]], ...] = (
    {"result": (dict, _NOTHING)},
    {"error": (str,), "lost": (str, _NOTHING)},
)


@dataclasses.dataclass
class Worker:
    """A coordinator's knowledge of the newest process of a task.

    Attributes:
      session: Names the process.
      number: The number of earlier sessions of the task.
      host: The name of its host.
      pid: Its process id there.
      address: The address of its server, or of the server of the session before; else
        None.
      peer: The address at which other learners reach it for training; None before it
        has one.
      heard_at: The time of its last message, in seconds of the coordinator's clock.
      ending: The reason for its end, as given to `CoordinatorClient.leave`; else None.
    """

    session: str
    number: int
    host: str
    pid: int
    address: str | None
    heard_at: float
    peer: str | None = None
    ending: dict[str, Any] | None = None


class Coordinator:
    """Tracks the workers of a run, and tells them about each other."""

    def __init__(
        self,
        run: Mapping[str, Any],
        *,
        host: str = "localhost",
        port: int | None = None,
        token: str | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts the server.

        Args:
          run: The settings of the run, valid in JSON. If it has several "num_learners",
            they train in groups.
          host: The interface to listen on; see `replay_service.Server`.
          port: The port; None for any free one.
          token: The run's token; by default the environment variable
            TFRL_REPLAY_TOKEN.
          now: The clock.

        Raises:
          ValueError: Other hosts can reach the server, and there is no token.
          OSError: The port is in use.
        """
        self.now = now
        self._run = dict(run)
        self._workers: dict[str, Worker] = {}
        self._stops: set[str] = set()
        learners = range(self._run.get("num_learners", 1))
        self._learners = [Task(LEARNER, number).key for number in learners]
        self._group: dict[str, Any] | None = None
        self._told: dict[str, Any] | None = None  # The contents of the board.
        self._due = float("-inf")
        self._refused: set[str] = set()
        self._server = replay_servers.SupervisedServer(
            lambda port: replay_service.Server(
                _make_tables(), port, host=host, token=token
            ),
            port,
        )
        local = "localhost" if host in ("0.0.0.0", "::") else host
        self._client = replay_service.Client(
            addresses.join(local, self.port), token=token, timeout=_TIMEOUT
        )
        self._publish()

    @property
    def port(self) -> int:
        """The port of the server, which stays the same."""
        return self._server.port

    @property
    def member(self) -> supervisor.Member:
        """The server, as a member of a supervisor's group."""
        return supervisor.Member("the coordinator", self._server.start)

    def worker(self, task: Task) -> Worker | None:
        """Returns the record of a task's newest process; None before the first."""
        return self._workers.get(task.key)

    def stop(self, role: str) -> None:
        """Asks all processes of a role to stop."""
        self._stops.add(role)
        self.update(at_once=True)

    def update(self, *, at_once: bool = False) -> None:
        """Reads the workers' notes and updates the board; call this often.

        While the server is down, nothing is new.

        Args:
          at_once: Whether to look now, even shortly after the last look.
        """
        now = self.now()
        if now < self._due and not at_once:
            return
        self._due = now + _PERIOD
        try:
            for note in self._take():
                problem = _problem(note)
                if problem is None:
                    self._hear(note, now)
                else:
                    self._refuse(note, problem)
            self._form_group()
            self._publish()
        except replay_service.ReverbError:
            return

    def _take(self) -> Iterator[Any]:
        infos = self._client.server_info(_TIMEOUT)
        if not infos[BOARD].current_size:
            self._told = None  # The server has been started again.
        size = infos[NOTES].current_size
        if size:
            for sample in self._client.sample(NOTES, size, emit_timesteps=False):
                try:
                    yield from_array(sample.data[0])
                except (ValueError, TypeError, RecursionError) as error:
                    yield error

    def _refuse(self, note: Any, problem: str) -> None:
        """Logs once why the notes of a worker are ignored."""
        fields = note if isinstance(note, dict) else {}
        task, host, pid = (fields.get(name) for name in ("task", "host", "pid"))
        text = f"{task!r:.50} on {host!r:.50}, process {pid!r:.20}" if fields else ""
        text = f"The note of a worker ({text or 'unknown'}) is left out: {problem}"
        if text not in self._refused:
            self._refused.add(text)
            _LOGGER.warning("%s", text)

    def _hear(self, note: Any, now: float) -> None:
        key, session = note["task"], note["session"]
        known = self._workers.get(key)
        if known is None or known.session != session:
            if not note["is_new"]:
                return  # The note of a process that another process has replaced.
            known = self._workers[key] = Worker(
                session=session,
                number=0 if known is None else known.number + 1,
                host=note["host"],
                pid=note["pid"],
                address=None if known is None else known.address,
                heard_at=now,
            )
        known.heard_at = now
        known.address = note["address"] or known.address
        known.peer = note["peer"] or known.peer
        known.ending = note["ending"] or known.ending

    def _form_group(self) -> None:
        """Lets the learners begin together when all of them are new processes."""
        found = [self._workers.get(key) for key in self._learners]
        ready = [worker for worker in found if worker and _is_ready(worker)]
        before = {} if self._group is None else self._group["sessions"]
        if len(found) == 1 or len(ready) < len(found):
            return
        sessions = [worker.session for worker in ready]
        if not {*before.values()} & {*sessions}:
            self._group = {
                "sessions": dict(zip(self._learners, sessions, strict=True)),
                "addresses": [worker.peer for worker in ready],
            }

    def _publish(self) -> None:
        board = {
            "version": version.__version__,
            "run": self._run,
            "workers": {
                key: {
                    "session": worker.session,
                    "number": worker.number,
                    "address": worker.address,
                    "has_failed": "error" in (worker.ending or {}),
                }
                for key, worker in self._workers.items()
            },
            "group": self._group,
            "stops": sorted(self._stops),
        }
        if board != self._told:
            self._client.insert(to_array(board), {BOARD: 1.0})
            self._told = board


def _problem(note: Any) -> str | None:
    """Returns why a note is not from a worker of this version; None if it is."""
    if not isinstance(note, dict):
        return f"got {note!r:.100}, expected an object of JSON."
    if note.get("version") != version.__version__:
        return (
            f"it has the version {note.get('version')!r:.20} of tfrl, expected "
            f"{version.__version__!r}; install the same version for all processes."
        )
    if not _fits(note, {"version": (str,), **_FIELDS}):
        return f"got {note!r:.500}, expected the fields {sorted(_FIELDS)}."
    ending = note["ending"]
    if not (ending is None or any(_fits(ending, fields) for fields in _ENDINGS)):
        return f"got the ending {ending!r:.500}, expected a result or an error."
    try:
        for name in ("address", "peer"):
            addresses.split(note[name] or "localhost:0")
    except ValueError as error:
        return str(error)
    return None


def _fits(given: dict[str, Any], fields: Mapping[str, tuple[type, ...]]) -> bool:
    return given.keys() == fields.keys() and all(
        isinstance(given[name], types) for name, types in fields.items()
    )


def _is_ready(worker: Worker) -> bool:
    return worker.peer is not None and worker.ending is None


def to_array(value: Any) -> np.ndarray:
    """Returns a value as JSON, in an array of uint8, with spaces after it."""
    return replay_servers.padded(json.dumps(value).encode(), b" ")


def from_array(array: np.ndarray) -> Any:
    """Returns the value of an array that `to_array` made."""
    return json.loads(np.asarray(array, np.uint8).tobytes())


def _make_tables() -> list[replay_service.Table]:
    message = replay_servers.bytes_spec()
    return [
        replay_servers.make_table(NOTES, _MOST_NOTES, message),
        replay_servers.make_table(BOARD, 1, message, max_times_sampled=0),
    ]
