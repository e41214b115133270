"""A replay server that lives on its own, for those who kill it."""

from __future__ import annotations

import pathlib
import subprocess
import sys

from benchmarks import processes

_PATIENCE = 60.0  # Seconds for it to end.


class ServerCommand:
    """A server that lives on its own, as `tfrl-replay-server` starts it.

    Args:
      folder: for its checkpoints and for what it says.
      port: on which it listens; 0 for a free one.
      max_size: of its tables, "kept" and "live".
    """

    def __init__(self, folder: pathlib.Path, port: int = 0, max_size: int = 100_000):
        tables = [
            f"--table=name={name},max_size={max_size}" for name in ("kept", "live")
        ]
        self._log = folder / "server.log"
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tfrl.replay_service.server_command"),
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
        """On which it listens."""
        return int(self.address.rpartition(":")[2])

    @property
    def said(self) -> str:
        """What it wrote to standard error."""
        return self._log.read_text()

    @property
    def is_up(self) -> bool:
        """Whether it came up at all."""
        return bool(self.address)

    def kill(self) -> None:
        """Ends it with -9."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Ends it, and waits."""
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        finally:
            self._process.communicate()
