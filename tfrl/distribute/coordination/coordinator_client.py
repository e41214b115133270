"""`CoordinatorClient`, with which a process takes part in a run."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any

from tfrl import replay_service, version
from tfrl.distribute.coordination import coordinator
from tfrl.distribute.process_roles import Task

_PERIOD = 1.0  # Seconds between notes.
_FIRST_PERIOD = 0.05  # Seconds between notes while the worker waits for the board.
_GOODBYE = 5.0  # Seconds for the last note.


class CoordinatorClient:
    """This process as a member of a run, until `leave`.

    A thread tells the coordinator every second that this process lives, and reads the
    board if it has changed.

    Attributes:
      task: The task of this process.
      run: The settings of the run.
      number: The number of earlier processes of the task.
      last_address: The address that the previous process of the task announced, or
        None.
    """

    def __init__(self, address: str, task: Task, *, patience: float = 60.0) -> None:
        """Joins a run.

        Args:
          address: The coordinator's address, "host:port".
          task: The task of this process.
          patience: The number of seconds to keep trying to reach the coordinator, now
            and later.

        Raises:
          ReplayUnavailable: No coordinator answers.
          AuthenticationError: The coordinator expects another token.
          RuntimeError: The coordinator has another version of tfrl.
        """
        self.task = task
        self._coordinator = address
        self._client = replay_service.Client(address, timeout=patience)
        self._note: dict[str, Any] = {
            "version": version.__version__,
            "task": task.key,
            "session": secrets.token_hex(8),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "is_new": True,
            "address": None,
            "peer": None,
            "ending": None,
        }
        self._num_boards = 0  # The number of boards that the coordinator has written.
        self._lost: str | None = None
        self._has_left = threading.Event()
        self._board: dict[str, Any] = {"workers": {}, "group": None}
        self._say()
        while self._mine is None:
            time.sleep(_FIRST_PERIOD)
            self._read()
        self._note["is_new"] = False
        self.run: dict[str, Any] = self._board["run"]
        self.number = int(self._mine["number"])
        self.last_address: str | None = self._mine["address"]
        self._thread = threading.Thread(
            target=self._keep_in_touch, name="coordinator", daemon=True
        )
        self._thread.start()

    @property
    def stopped_by(self) -> str | None:
        """The reason why this process must stop; None while there is none."""
        if self._lost:
            return self._lost
        if self._mine is None:
            return f"another process has taken the place of {self.task.title}"
        return "the run stops" if self.task.role in self._board["stops"] else None

    @property
    def has_lost_coordinator(self) -> bool:
        """Whether the coordinator has stopped answering."""
        return self._lost is not None

    def address_of(self, task: Task) -> str | None:
        """Returns the newest address that a task has announced, or None."""
        worker = self._board["workers"].get(task.key)
        return None if worker is None else worker["address"]

    def wait_for_address_of(self, task: Task) -> str | None:
        """Waits for the address of a task; returns None if this process must stop."""
        while self.stopped_by is None:
            address = self.address_of(task)
            if address is not None:
                return address
            time.sleep(_FIRST_PERIOD)
        return None

    def announce(self, address: str) -> None:
        """Tells the others the address of this process's server."""
        self._note["address"] = address
        self._say()

    def wait_for_group(self, peer: str) -> dict[str, Any] | None:
        """Waits until all learners, including this one, can begin in a new group.

        Args:
          peer: The address at which the other learners reach this process.

        Returns:
          The group, with their "sessions" and "addresses"; None if this process must
          stop.
        """
        self._note["peer"] = peer
        self._say()
        while self.stopped_by is None:
            group = self._board["group"]
            if group and group["sessions"].get(self.task.key) == self._note["session"]:
                return dict(group)
            time.sleep(_FIRST_PERIOD)
        return None

    def loss_in(self, group: Mapping[str, Any]) -> str | None:
        """Returns how the group lost a learner; None while the group is complete."""
        for key, session in group["sessions"].items():
            worker = self._board["workers"][key]
            if worker["session"] != session:
                return f"another process has taken the place of {key}"
            if worker["has_failed"]:
                return f"the process of {key} has failed"
        return None

    def leave(self, **ending: Any) -> None:
        """Tells the coordinator how this process's work has ended.

        Args:
          **ending: "result", the result of the work, valid in JSON; or "error", the
            traceback of its exception, and "lost", the exception's message if another
            attempt may succeed.
        """
        self._has_left.set()
        self._thread.join(_GOODBYE)
        last = replay_service.Client(self._coordinator, timeout=_GOODBYE)
        with contextlib.suppress(replay_service.ReverbError):
            self._say(last, ending=ending)

    @property
    def _mine(self) -> dict[str, Any] | None:
        """This process's entry on the board."""
        entry = self._board["workers"].get(self.task.key)
        is_mine = entry is not None and entry["session"] == self._note["session"]
        return entry if is_mine else None

    def _keep_in_touch(self) -> None:
        while not self._has_left.wait(_PERIOD):
            try:
                self._say()
                self._read()
            except replay_service.ReverbError as error:
                self._lost = f"the coordinator does not answer ({error})"
                return
            except RuntimeError as error:
                self._lost = str(error)
                return

    def _say(self, client: replay_service.Client | None = None, **changes: Any) -> None:
        note = coordinator.to_array({**self._note, **changes})
        (client or self._client).insert(note, {coordinator.NOTES: 1.0})

    def _read(self) -> None:
        info = self._client.server_info()[coordinator.BOARD]
        number = info.rate_limiter_info.insert_stats.completed
        if number != self._num_boards:
            sample = self._client.sample_batch(coordinator.BOARD, 1)
            board = coordinator.from_array(sample.data[0])
            if board.get("version") != version.__version__:
                raise RuntimeError(
                    f"version: got {version.__version__!r} of tfrl in "
                    f"{self.task.title}, expected {board.get('version')!r}, the "
                    f"version of the coordinator at {self._coordinator}; install the "
                    "same version for all processes."
                )
            self._board = board
            self._num_boards = number
