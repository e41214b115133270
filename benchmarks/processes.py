"""The workers: a process for each system that is measured, and how to talk to it."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks import peers

ROOT = pathlib.Path(__file__).resolve().parent.parent
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
}
_JAX_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


class WorkerError(RuntimeError):
    """A worker could not do what it was asked; says how the worker ended."""


@dataclasses.dataclass(frozen=True)
class System:
    """A system that is measured.

    Attributes:
      title: its name for readers.
      module: what its worker runs.
      peer: the peer's Python environment (see `benchmarks.peers`); None is our own.
      variables: environment variables besides those of `environment_variables`.
      one_thread: whether its libraries are to use no more than one.
      root: the checkout whose package and workers run.
    """

    title: str
    module: str
    peer: str | None = None
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    one_thread: bool = True
    root: pathlib.Path = ROOT

    def command(self) -> list[str]:
        """What starts its worker.

        Raises:
          WorkerError: if the peer's environment is missing.
        """
        if self.peer is None:
            return [sys.executable, "-m", self.module]
        python = peers.python(self.peer)
        if not python.exists():
            raise WorkerError(
                f"no Python environment in {python.parent.parent}; make it with "
                f"`python -m benchmarks.peers {self.peer}`"
            )
        return [str(python), "-m", self.module]


_WORKERS = "benchmarks.workers"
SYSTEMS = {
    "tfrl": System("tfrl", f"{_WORKERS}.with_tfrl"),
    "tf_agents": System("TF-Agents", f"{_WORKERS}.with_tf_agents", "tf_agents"),
    "torch": System("PyTorch", f"{_WORKERS}.with_torch", "torch"),
    "jax": System("JAX", f"{_WORKERS}.with_jax", "jax", {"XLA_FLAGS": _JAX_ONE_THREAD}),
    "floors": System("Floors", f"{_WORKERS}.floors"),
    "reverb": System(
        "Reverb", f"{_WORKERS}.with_reverb", "tf_agents", one_thread=False
    ),
    "replay_service": System(
        "tfrl's replay service", f"{_WORKERS}.with_replay_service", one_thread=False
    ),
    "replay_unix": System(
        "tfrl's replay service, over a Unix socket",
        f"{_WORKERS}.with_replay_service",
        variables={"TFRL_REPLAY_TRANSPORT": "unix"},
        one_thread=False,
    ),
    "replay_grpc": System(
        "tfrl's replay service, over gRPC",
        f"{_WORKERS}.with_replay_service",
        variables={"TFRL_REPLAY_TRANSPORT": "grpc"},
        one_thread=False,
    ),
}
OURS = frozenset({"tfrl", "replay_service", "replay_unix", "replay_grpc"})


def in_checkout(name: str, checkout: pathlib.Path) -> str:
    """The name, as `start` takes it, of the same system in another checkout."""
    return f"{name}@{checkout}"


def environment_variables(
    more: Mapping[str, str] | None = None,
    one_thread: bool = True,
    root: pathlib.Path = ROOT,
) -> dict[str, str]:
    """This process' variables, with one thread each and no GPU unless named."""
    variables = {**os.environ, **(_ONE_THREAD if one_thread else {}), **(more or {})}
    variables.setdefault("CUDA_VISIBLE_DEVICES", "")
    variables.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    variables["PYTHONPATH"] = str(root)
    return variables


class Window(NamedTuple):
    """What one run of a task took, and how many of what it did."""

    seconds: float
    cpu_seconds: float
    counts: dict[str, int]


class Worker:
    """A worker process; between requests it sleeps.

    Args:
      command: what starts it.
      variables: its whole environment.
      timeout: seconds that an answer may take.
      root: the folder in which it runs.

    Raises:
      WorkerError: if it ends, or says nothing in time.
    """

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        timeout: float,
        root: pathlib.Path = ROOT,
    ) -> None:
        self._timeout = timeout
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=dict(variables),
            cwd=root,
            text=True,
        )
        self._made: dict[str, tuple[int, Any]] = {}
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self.versions: dict[str, Any] = self._receive()["ready"]

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def make(self, task: str, settings: Mapping[str, Any]) -> tuple[int, Any]:
        """Makes a task, or takes one made before; returns its number and its facts."""
        request = {"make": task, "settings": dict(settings)}
        key = json.dumps(request, sort_keys=True)
        if key not in self._made:
            answer = self._ask(request)
            self._made[key] = answer["made"], answer["facts"]
        return self._made[key]

    def run(self, task: int, count: int) -> Window:
        """Runs a task about `count` times."""
        answer = self._ask({"run": task, "count": count})
        return Window(answer["seconds"], answer["cpu_seconds"], answer["counts"])

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        self._errors.close()

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError:
            pass  # It has ended; how is told by what is received.
        answer = self._receive()
        if "error" in answer:
            raise WorkerError("it said:\n" + _tail(answer["error"]))
        return answer

    def _receive(self) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=self._timeout)
        except queue.Empty:
            self._process.kill()
            self._process.wait()
            raise WorkerError(
                f"no answer within {self._timeout:.0f} s{self._last_words()}"
            ) from None
        if line is None:
            status = self._process.wait()
            raise WorkerError(f"ended with status {status}{self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _last_words(self) -> str:
        self._errors.seek(0)
        said = _tail(self._errors.read().decode(errors="replace"))
        return f"; it said:\n{said}" if said else ""


def start(
    name: str, timeout: float, variables: Mapping[str, str] | None = None
) -> Worker:
    """Starts a worker of a system.

    Args:
      name: of `SYSTEMS`, and perhaps a colon and what tells workers of one apart, and
        perhaps a checkout (see `in_checkout`).
      timeout: seconds that an answer may take.
      variables: environment variables besides the system's own.

    Raises:
      WorkerError: if it cannot be started.
    """
    system = _system(name)
    more = {**system.variables, **(variables or {})}
    environment = environment_variables(more, system.one_thread, system.root)
    return Worker(system.command(), environment, timeout, system.root)


class Pool:
    """The workers that are running, one for each name asked for."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._workers: dict[str, Worker] = {}
        self.versions: dict[str, dict[str, Any]] = {}

    def get(self, name: str) -> Worker:
        """The worker of a name as `start` takes, started if it is not running.

        Raises:
          WorkerError: if it cannot be started.
        """
        worker = self._workers.get(name)
        if worker is None or not worker.alive:
            worker = start(name, self.timeout)
            self._workers[name] = worker
            self.versions[_system(name).title] = worker.versions
        return worker

    def close(self) -> None:
        """Ends all workers."""
        while self._workers:
            self._workers.popitem()[1].close()


def _system(name: str) -> System:
    name, _, checkout = name.partition("@")
    system = SYSTEMS[name.partition(":")[0]]
    if not checkout:
        return system
    title = f"{system.title} in {checkout}"
    return dataclasses.replace(system, title=title, root=pathlib.Path(checkout))


def _tail(text: str, lines: int = 8) -> str:
    told = [line for line in text.splitlines() if line.strip(" ^~|")]
    return "\n".join(f"      {line.strip()}" for line in told[-lines:])
