"""`RemoteProcess`: a worker on any host, as a supervisor's process."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from tfrl import train
from tfrl.distribute.coordination.coordinator import Coordinator, Worker
from tfrl.distribute.process_roles import Task
from tfrl.replay_service import errors
from tfrl.system import child_errors, child_process
from tfrl.utils import number_checks

_POLL = 0.1  # Seconds.


@dataclasses.dataclass(frozen=True)
class Watch:
    """A launcher's settings for watching its workers.

    Attributes:
      patience: The number of seconds within which a worker has to appear.
      silence: The number of seconds without a message after which a worker counts as
        dead.
      say: Takes a line for each worker that appears.

    Raises:
      ValueError: A number of seconds is not positive.
    """

    patience: float
    silence: float
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        for name in ("patience", "silence"):
            number_checks.check_number(
                name, getattr(self, name), 0, excludes_low=True, remedy="raise it"
            )


class RemoteProcess:
    """A worker that another program starts, and that the coordinator watches."""

    def __init__(
        self,
        coordinator: Coordinator,
        task: Task,
        watch: Watch,
    ) -> None:
        """Expects the worker.

        Args:
          coordinator: The coordinator of the run.
          task: The worker's task.
          watch: The settings for watching the worker.
        """
        self._coordinator = coordinator
        self._task = task
        self._watch = watch
        self._since = coordinator.now()
        self._worker: Worker | None = None
        self._has_ended = False

    @property
    def pid(self) -> int:
        """The process id on its host; 0 before it has started."""
        return 0 if self._worker is None else self._worker.pid

    @property
    def result(self) -> train.RunResult | None:
        """The result of the learner; None while it runs, or if there is none."""
        ending = None if self._worker is None else self._worker.ending
        values = None if ending is None else ending.get("result")
        return None if values is None else train.RunResult(**values)

    def poll(self) -> child_process.Ending | None:
        """Returns how the worker has ended; None while it runs or has not started yet.

        Raises:
          TimeoutError: It has not appeared in time.
        """
        self._coordinator.update()
        if self._worker is None and not self._has_appeared():
            return None
        ending = self._ending()
        return None if ending is None else self._ended(ending)

    def stop(self, grace: float) -> None:
        """Asks the worker to stop, and waits until it has ended."""
        deadline = time.monotonic() + grace
        if not self._has_ended:
            self._coordinator.stop(self._task.role)
        while self._worker and not self._has_ended and time.monotonic() < deadline:
            time.sleep(_POLL)
            self.poll()

    def _ended(self, ending: child_process.Ending) -> child_process.Ending:
        """Records that there is no worker to stop."""
        self._has_ended = True
        return ending

    def _has_appeared(self) -> bool:
        """Whether the task has a worker that has sent a note since this was made."""
        newest = self._coordinator.worker(self._task)
        if newest and newest.heard_at > self._since and newest.ending is None:
            self._worker = newest
            self._watch.say(
                f"{self._task.title}: process {newest.pid} on {newest.host}."
            )
            return True
        waited = self._coordinator.now() - self._since
        if waited > self._watch.patience:
            raise TimeoutError(
                f"{self._task.title}: no worker has appeared within "
                f"{self._watch.patience:g} s, expected one with "
                f"--role={self._task.role} --index={self._task.number}; start it, look "
                "at its output, or raise the launcher's patience."
            )
        return False

    def _ending(self) -> child_process.Ending | None:
        assert self._worker is not None
        ending = self._worker.ending
        if ending is not None and "error" in ending:
            return child_process.Ending(
                "raised an exception", _raised(self._task.title, **ending)
            )
        if ending is not None:
            return child_process.Ending("has finished", has_finished=True)
        if self._coordinator.worker(self._task) is not self._worker:
            return child_process.Ending("was replaced by another process")
        silent = self._coordinator.now() - self._worker.heard_at
        if silent > self._watch.silence:
            return child_process.Ending(f"was not heard of for {silent:.0f} s")
        return None


def _raised(title: str, error: str, lost: str | None) -> child_errors.ChildRaisedError:
    raised = child_errors.ChildRaisedError(
        f"{title}: its work raised the exception below, expected none; fix its cause, "
        f"then run the same command again.\n\n{error}"
    )
    if lost is not None:
        raised.original = errors.ReplayUnavailable(lost)
    return raised
