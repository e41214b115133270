"""Starts the workers, one process for each measured system, and calls their tasks."""

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
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
}
_JAX_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


class WorkerError(RuntimeError):
    """A worker failed; the message says how."""


@dataclasses.dataclass(frozen=True)
class System:
    """A system that is measured.

    Attributes:
      title: Its name for readers.
      module: The module that its worker runs.
      peer: The peer's Python environment (see `benchmarks.peers`); None for this one.
      variables: Environment variables in addition to `environment_variables`.
      one_thread: Whether its libraries use only one thread.
      sees_gpus: Whether it may use GPUs.
      root: The checkout whose package and workers run.
    """

    title: str
    module: str
    peer: str | None = None
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    one_thread: bool = True
    sees_gpus: bool = False
    root: pathlib.Path = ROOT

    def command(self) -> list[str]:
        """Returns the command that starts its worker.

        Raises:
          WorkerError: The peer's environment is missing.
        """
        if self.peer is None:
            return [sys.executable, "-m", self.module]
        try:
            return [str(peers.installed_python(self.peer)), "-m", self.module]
        except peers.PeerError as error:
            raise WorkerError(str(error)) from None


_WORKERS = "benchmarks.workers"
SYSTEMS = {
    "tfrl": System("tfrl", f"{_WORKERS}.with_tfrl"),
    # 0 is one thread for each processor that the process may use.
    "tfrl_threads": System(
        "tfrl on all processors",
        f"{_WORKERS}.with_tfrl",
        variables={"TF_NUM_INTRAOP_THREADS": "0"},
    ),
    "tfrl_cpu": System("tfrl on the CPU", f"{_WORKERS}.on_device", one_thread=False),
    "tfrl_device": System(
        "tfrl on a device",
        f"{_WORKERS}.on_device",
        # Several workers share the GPU's memory.
        variables={"TF_FORCE_GPU_ALLOW_GROWTH": "true"},
        one_thread=False,
        sees_gpus=True,
    ),
    "bandits": System("tfrl's bandits", f"{_WORKERS}.bandits_with_tfrl"),
    "tf_agents_bandits": System(
        "TF-Agents' bandits", f"{_WORKERS}.bandits_with_tf_agents", "tf_agents"
    ),
    "pages": System("The pages", f"{_WORKERS}.with_pages"),
    "tf_agents": System("TF-Agents", f"{_WORKERS}.with_tf_agents", "tf_agents"),
    "torch": System("PyTorch", f"{_WORKERS}.with_torch", "torch"),
    "torch_threads": System(
        "PyTorch on all processors",
        f"{_WORKERS}.with_torch",
        "torch",
        one_thread=False,
    ),
    "jax": System("JAX", f"{_WORKERS}.with_jax", "jax", {"XLA_FLAGS": _JAX_ONE_THREAD}),
    "jax_here": System(
        "JAX beside tfrl",
        f"{_WORKERS}.with_jax",
        variables={"XLA_FLAGS": _JAX_ONE_THREAD, "JAX_PLATFORMS": "cpu"},
    ),
    "jax_environments": System(
        "JAX's environments",
        f"{_WORKERS}.with_jax_environments",
        variables={"XLA_FLAGS": _JAX_ONE_THREAD, "JAX_PLATFORMS": "cpu"},
    ),
    "sbx": System("SBX", f"{_WORKERS}.with_sbx", "sbx", {"XLA_FLAGS": _JAX_ONE_THREAD}),
    "dreamerv3": System(
        "DreamerV3's authors",
        f"{_WORKERS}.with_dreamerv3",
        "dreamerv3",
        {"XLA_FLAGS": _JAX_ONE_THREAD},
    ),
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
    "replay_tcp": System(
        "tfrl's replay service, over TCP",
        f"{_WORKERS}.with_replay_service",
        variables={"TFRL_REPLAY_TRANSPORT": "tcp"},
        one_thread=False,
    ),
}
OURS = frozenset(
    {
        *("tfrl", "tfrl_sweep", "tfrl_cpu", "tfrl_device", "pages"),
        "bandits",
        *("replay_service", "replay_unix", "replay_tcp"),
    }
)


def in_checkout(name: str, checkout: pathlib.Path) -> str:
    """Returns the name, for `start`, of the same system in another checkout."""
    return f"{name}@{checkout}"


def environment_variables(
    more: Mapping[str, str] | None = None,
    one_thread: bool = True,
    root: pathlib.Path = ROOT,
    *,
    sees_gpus: bool = False,
) -> dict[str, str]:
    """Returns this process' variables, with one thread and no GPU by default."""
    variables = {**os.environ, **(ONE_THREAD if one_thread else {}), **(more or {})}
    if not sees_gpus:
        variables.setdefault("CUDA_VISIBLE_DEVICES", "")
    variables.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    variables["PYTHONPATH"] = str(root)
    return variables


class Window(NamedTuple):
    """The time that one run of a task took, and the counts of its operations."""

    seconds: float
    cpu_seconds: float
    counts: dict[str, int]


class Worker:
    """A worker process; it sleeps between requests."""

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        timeout: float,
        root: pathlib.Path = ROOT,
    ) -> None:
        """Starts the process.

        Args:
          command: The command that starts it.
          variables: All its environment variables.
          timeout: The seconds that an answer may take.
          root: The folder in which it runs.

        Raises:
          WorkerError: It ends, or does not answer in time.
        """
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
        """The id of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    def make(self, task: str, settings: Mapping[str, Any]) -> tuple[int, Any]:
        """Makes a task unless it exists already; returns its number and its facts."""
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
        """Kills the process."""
        self._process.kill()
        self._process.wait()
        self._errors.close()

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError:
            pass  # It has ended; `_receive` raises an error that says how.
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
      name: A name of `SYSTEMS`, optionally with a colon and a role, which makes a
        separate worker, and optionally with a checkout (see `in_checkout`).
      timeout: The seconds that an answer may take.
      variables: Environment variables in addition to the system's.

    Raises:
      WorkerError: It cannot be started.
    """
    system = _system(name)
    more = {**system.variables, **(variables or {})}
    environment = environment_variables(
        more, system.one_thread, system.root, sees_gpus=system.sees_gpus
    )
    return Worker(system.command(), environment, timeout, system.root)


class Pool:
    """The running workers, one for each requested name."""

    def __init__(self, timeout: float) -> None:
        """Creates the pool; an answer may take `timeout` seconds."""
        self.timeout = timeout
        self._workers: dict[str, Worker] = {}
        self.versions: dict[str, dict[str, Any]] = {}

    def get(self, name: str) -> Worker:
        """Returns the worker of a name (see `start`), started if it is not running.

        Raises:
          WorkerError: It cannot be started.
        """
        worker = self._workers.get(name)
        if worker is None or not worker.alive:
            worker = start(name, self.timeout)
            self._workers[name] = worker
            self.versions[_system(name).title] = worker.versions
        return worker

    def close(self) -> None:
        """Kills all workers."""
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
