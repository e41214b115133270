"""Starts and stops a server process from its parent process."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from tfrl.replay_service import errors
from tfrl.replay_service.transport import addresses
from tfrl.system import child_errors, interpreter

_CODE = (
    "from tfrl.replay_service.engine.serving import main; "
    "main.child_main(int(sys.argv[1]))"
)
_STOP = b"stop\n"  # See `engine.serving.main.STOP`.
_START_DEADLINE = 60.0  # Seconds; starting takes one second on an idle machine.
_GRACE = 2.0  # Seconds between the request to end and killing the process.


class KilledAtStartError(RuntimeError):
    """A signal has killed the process before it listened.

    Attributes:
      how: The signal, as a phrase such as "was killed by SIGKILL".
    """

    def __init__(self, text: str, how: str):
        """Stores the phrase.

        Args:
          text: The message.
          how: See the class.
        """
        super().__init__(text)
        self.how = how


class ServerProcess:
    """A server process, which the constructor starts and `stop` ends.

    Attributes:
      port: The port that the server listens on.
      pid: The process id.
    """

    def __init__(self, config: Mapping[str, Any]):
        """Starts the process and waits until it listens.

        Args:
          config: See `engine.serving.main.run`.

        Raises:
          OSError: If the port is not available.
          ValueError: If the server refuses the configuration.
          RuntimeError: If the process does not start for another reason.
        """
        self._owner = os.getpid()
        self._stopped = False
        self._directory: str | None = None
        self._process = interpreter.start(
            _CODE, [os.getpid()], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.pid = self._process.pid
        try:
            message = self._greet(config)
            if "port" not in message:
                raise _failure(message)
        except BaseException:
            self._process.kill()
            self._process.wait()
            self._close_pipes()
            raise
        self.port = int(message["port"])
        self._directory = message.get("directory")
        assert self._process.stdout is not None
        self._process.stdout.close()
        addresses.add_own_server(self.port, self.death)

    def wait(self, timeout: float) -> bool:
        """Waits for `stop` to end the process; returns whether the process has ended.

        Args:
          timeout: The number of seconds to wait.

        Raises:
          RuntimeError: If the process has ended without `stop`.
        """
        death = self.death(timeout)
        if death is not None:
            raise RuntimeError(death)
        return self._stopped and self._process.poll() is not None

    def how_it_died(self) -> str | None:
        """Returns in a phrase how the process ended without `stop`; None if not."""
        code = self._exit_code(0.0)
        return None if code is None else child_errors.describe_exit(code)

    def _exit_code(self, wait: float) -> int | None:
        """Returns the code of a process that ended without `stop`; None if not."""
        try:
            code = self._process.wait(wait)
        except subprocess.TimeoutExpired:
            return None
        return None if self._stopped else code

    def death(self, wait: float) -> str | None:
        """Returns how the process ended without `stop`; None if it has not.

        Args:
          wait: The number of seconds to wait for its end.
        """
        code = self._exit_code(wait)
        if code is None:
            return None
        hint = "its output on stderr says why"
        if code < 0:
            hint = f"it {child_errors.describe_exit(code)}"
        if child_errors.was_killed(code):
            hint += ", so check whether the machine ran out of memory"
        return (
            f"The replay server on port {self.port} (process {self.pid}), which this "
            f"process had started, has died with exit code {code}: {hint}. All changes "
            "of its tables since the last checkpoint are lost. Run this program "
            "again; with a DefaultCheckpointer the server continues from that "
            "checkpoint."
        )

    def stop(self) -> None:
        """Ends the process if it is still running. May be called repeatedly."""
        if self._owner != os.getpid() or self._stopped:
            return  # A forked copy of the owner must not end the process.
        self._stopped = True
        addresses.remove_own_server(self.port, self.death)
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # Else it assumes this process dead.
            self._process.stdin.write(_STOP)
            self._process.stdin.flush()
        self._close_pipes()
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _greet(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Sends the configuration and returns the answer."""
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(_START_DEADLINE, give_up)
        timer.daemon = True
        timer.start()
        try:
            self._send(config)
            for message in self._messages():
                # Restoring a large checkpoint may take longer than the deadline.
                timer.cancel()
                if "restoring" not in message:
                    return message
        finally:
            timer.cancel()
        code = self._process.wait()
        if code < 0 and not late.is_set():
            how = child_errors.describe_exit(code)
            raise KilledAtStartError(
                f"The replay server {how} while it started; check whether the machine "
                "ran out of memory, and start it again.",
                how,
            )
        what = (
            f"did not come up within {_START_DEADLINE:.0f} s"
            if late.is_set()
            else f"ended immediately, with exit code {code}"
        )
        raise RuntimeError(
            f"The replay server {what}; its output on stderr says why. It runs in "
            f"{sys.executable!r}: check that this interpreter can import tfrl."
        )

    def _send(self, config: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # The exit code is more informative.
            self._process.stdin.write(json.dumps(config).encode() + b"\n")
            self._process.stdin.flush()

    def _messages(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # Some installations print text whenever Python starts.
            with contextlib.suppress(ValueError):
                message = json.loads(line)
                if isinstance(message, dict):
                    yield message

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _failure(message: Mapping[str, Any]) -> Exception:
    if message.get("code") == "os":
        number = message.get("errno")
        # With None as its number, the text would begin with "[Errno None]".
        return OSError(*([] if number is None else [number]), message["message"])
    return errors.from_meta(message)
