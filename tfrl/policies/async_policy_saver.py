"""Saves policies without making the training wait."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent import futures

from tfrl.policies import policy_saver as policy_saver_lib
from tfrl.utils import mixins


class AsyncPolicySaver(mixins.Forwards):
    """A `PolicySaver` whose saves run in a background thread, one at a time.

    A save that is requested while another is running is skipped, with a line in the
    log. The thread reads the variables one by one, so if training continues during a
    save, the saved values may come from different train steps. All other attributes
    are looked up in the wrapped saver.
    """

    _forwards_to = "_policy_saver"

    def __init__(self, policy_saver: policy_saver_lib.PolicySaver) -> None:
        """Creates the saver.

        Args:
          policy_saver: The saver that writes the policy.

        Raises:
          RuntimeError: The next call of a method below raises it if a save in the
            background failed; its cause is the exception of the save. Later saves work
            again.
          ValueError: `save` and `save_checkpoint` raise it if the saver is closed.
        """
        self._policy_saver = policy_saver
        self._thread = futures.ThreadPoolExecutor(1, thread_name_prefix="policy_saver")
        self._running: futures.Future[None] | None = None
        self._export_dir = ""
        self._closed = False

    def save(self, export_dir: str, blocking: bool = False) -> None:
        """Starts to save the policy to `export_dir`.

        Args:
          export_dir: See `PolicySaver.save`.
          blocking: Whether to wait for a running save, then save, and return only when
            the new save is done.
        """
        self._start(self._policy_saver.save, export_dir, blocking)

    def save_checkpoint(self, export_dir: str, blocking: bool = False) -> None:
        """Starts to save the variables to `export_dir`; see `save`."""
        self._start(self._policy_saver.save_checkpoint, export_dir, blocking)

    def flush(self) -> None:
        """Waits until nothing is being saved."""
        if self._running is not None:
            futures.wait([self._running])
        self._raise_failure()

    def close(self) -> None:
        """Waits until nothing is being saved and ends the thread."""
        self._closed = True
        self._thread.shutdown(wait=True)
        self._raise_failure()

    def _start(
        self, save: Callable[[str], None], export_dir: str, blocking: bool
    ) -> None:
        if self._closed:
            raise ValueError(
                f"export_dir: got {export_dir} for an AsyncPolicySaver that is closed, "
                "expected no save after close(); make a new one."
            )
        if blocking:
            self.flush()
            save(export_dir)
            return
        if self._running is not None and not self._running.done():
            logging.getLogger(__name__).info(
                "Skipping the save to %s: that to %s is running.",
                export_dir,
                self._export_dir,
            )
            return
        self._raise_failure()
        self._export_dir = os.fspath(export_dir)
        self._running = self._thread.submit(save, export_dir)

    def _raise_failure(self) -> None:
        """Raises a RuntimeError if the last save failed, once for each save."""
        if self._running is None or not self._running.done():
            return
        failure, self._running = self._running.exception(), None
        if failure is not None:
            raise RuntimeError(
                f"AsyncPolicySaver: the save to {self._export_dir} failed with "
                f"{type(failure).__name__}: {failure}; remove the cause, and save "
                "again."
            ) from failure
