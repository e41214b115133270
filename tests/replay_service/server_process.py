"""A replay server in a process of its own, for checks that kill it."""

from __future__ import annotations

import pathlib
import subprocess
import sys

from benchmarks import processes

_PATIENCE = 60.0  # Seconds for it to end.


class ServerProcess:
    """A replay server that was started by the command `tfrl replay-server`."""

    def __init__(self, folder: pathlib.Path, port: int = 0, max_size: int = 100_000):
        """Starts the server.

        Args:
          folder: The folder for its checkpoints and its log.
          port: The port that it listens on; 0 for a free one.
          max_size: The size of each of its tables, "kept" and "live".
        """
        tables = [
            f"--table=name={name},max_size={max_size}" for name in ("kept", "live")
        ]
        self._log = folder / "server.log"
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tfrl", "replay-server"),
                *(f"--port={port}", f"--checkpoint_path={folder / 'checkpoints'}"),
                *tables,
            ],
            cwd=processes.ROOT,
            stdout=subprocess.PIPE,
            stderr=self._log.open("w"),
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self.address = line.partition(" at ")[2].partition(",")[0]
        self.pid = self._process.pid

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.address.rpartition(":")[2])

    @property
    def said(self) -> str:
        """The text that it wrote to standard error."""
        return self._log.read_text()

    @property
    def is_up(self) -> bool:
        """Whether it started successfully."""
        return bool(self.address)

    def kill(self) -> None:
        """Kills it with SIGKILL."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Terminates it, and waits for its end."""
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        finally:
            self._process.communicate()
