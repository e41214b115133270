"""Checks that concurrent writers and samplers lose, tear and leak nothing.

Every writer and every sampler works on three tables at the same time: a queue, each of
whose items is sampled once; a table whose limiter bounds the samples per insert; and a
table of images that evicts all the time. Half of the processes share memory with the
server, the others use TCP. The contents of a step identify it, so that torn or mixed
steps are found.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks import processes
from benchmarks.workers import memory

SAMPLES_PER_INSERT, MIN_SIZE, ERROR_BUFFER = 4.0, 100, 600.0
_SIZES = {"queue": 500, "ratio": 2_000, "images": 300}
_IMAGE = (84, 84)
_LENGTH = 3
_WORKER = "tests.replay_service.stress_worker"
_POLL = 0.1  # Seconds.
_PATIENCE = 120.0  # Seconds for workers to end after their working time.


@dataclasses.dataclass
class Findings:
    """The counts and measurements.

    Attributes:
      written: The number of items in each table, counted by the writers.
      sampled: The number of samples from each table, counted by the samplers.
      inserted: The number of items in each table, counted by the server.
      drawn: The number of samples from each table, counted by the server.
      queued: The writer and number of each of the queue's items, as they arrived.
      ratios: Values of inserts * samples per insert - samples, by the server's counts.
      held: The server's memory in bytes, measured repeatedly.
      grown: The bytes by which each sampler grew after a third of its time.
    """

    written: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter
    )
    sampled: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter
    )
    inserted: dict[str, int] = dataclasses.field(default_factory=dict)
    drawn: dict[str, int] = dataclasses.field(default_factory=dict)
    queued: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    ratios: list[float] = dataclasses.field(default_factory=list)
    held: list[int] = dataclasses.field(default_factory=list)
    grown: list[int] = dataclasses.field(default_factory=list)

    def faults(self) -> list[str]:
        """Returns a line for each fault."""
        least = MIN_SIZE * SAMPLES_PER_INSERT - ERROR_BUFFER
        most = MIN_SIZE * SAMPLES_PER_INSERT + ERROR_BUFFER
        apart = [ratio for ratio in self.ratios if not least <= ratio <= most]
        late = self.held[len(self.held) // 3 :]
        growth = late[-1] - late[0] if late else 0
        checks = {
            f"inserts: {self.written} were written, {self.inserted} counted": dict(
                self.written
            )
            == self.inserted,
            f"samples: {self.sampled} came, {self.drawn} counted": all(
                0 < self.sampled[name] <= drawn for name, drawn in self.drawn.items()
            ),
            f"the queue: {len(self.queued)} items came, {len(set(self.queued))} of "
            f"them different, of {self.inserted.get('queue')}": len(set(self.queued))
            == len(self.queued)
            == self.inserted.get("queue"),
            f"the limiter: {apart[:5]} is not in [{least}, {most}]": not apart,
            f"the server's memory grew by {growth} bytes": growth
            < 16e6 + 0.05 * late[0],
            f"samplers grew by {self.grown} bytes": all(
                grown < 32e6 for grown in self.grown
            ),
        }
        return [what for what, is_right in checks.items() if not is_right]


def make_server() -> Any:
    """Starts the server with its tables."""
    from tfrl import replay_service as reverb

    selectors, limiters = reverb.selectors, reverb.rate_limiters
    ratio = limiters.SampleToInsertRatio(SAMPLES_PER_INSERT, MIN_SIZE, ERROR_BUFFER)
    options = {
        "ratio": (selectors.Prioritized(0.8), ratio),
        "images": (selectors.Uniform(), limiters.MinSize(1)),
    }
    tables = [
        reverb.Table(
            name,
            sampler=sampler,
            remover=selectors.Fifo(),
            max_size=_SIZES[name],
            rate_limiter=limiter,
            signature=_signature(name),
        )
        for name, (sampler, limiter) in options.items()
    ]
    queue = reverb.Table.queue("queue", _SIZES["queue"], signature=_signature("queue"))
    return reverb.Server([queue, *tables])


def stress(
    seconds: float,
    writers: int = 4,
    samplers: int = 2,
    dataset: bool = False,
) -> Findings:
    """Runs writers and samplers.

    Args:
      seconds: How long writers write; samplers go on until the queue is empty.
      writers: The number of writing processes.
      samplers: The number of sampling processes.
      dataset: Whether the first sampler takes images from a `TrajectoryDataset`.

    Raises:
      RuntimeError: A worker fails, for example because of a torn step.
    """
    server = make_server()
    started: list[subprocess.Popen[str]] = []
    try:
        address = f"localhost:{server.port}"
        writing = [
            _start(
                {"role": "writer", "address": address, "number": i, "seconds": seconds},
                unshared=i % 2 == 1,
            )
            for i in range(writers)
        ]
        started += writing
        sampling = [
            _start(
                {
                    "role": "sampler",
                    "address": address,
                    "dataset": dataset and i == 0,
                },
                unshared=i % 2 == 1,
            )
            for i in range(samplers)
        ]
        started += sampling
        return _watch(server, writing, sampling, seconds)
    finally:
        for process in started:
            process.kill()
            process.communicate()
        server.stop()


def _watch(
    server: Any,
    writing: list[subprocess.Popen[str]],
    sampling: list[subprocess.Popen[str]],
    seconds: float,
) -> Findings:
    findings = Findings()
    client = server.localhost_client()
    pid = server._process.pid
    deadline = time.monotonic() + seconds + _PATIENCE
    while True:
        is_over = all(process.poll() is not None for process in writing)
        infos = client.server_info()
        _note(findings, infos)
        findings.held.append(memory.held(pid))
        if is_over and not infos["queue"].current_size:
            break
        failed = [p for p in [*writing, *sampling] if p.poll()]
        if failed:
            raise RuntimeError(f"a worker failed:\n{failed[0].communicate()[1]}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"writers do not end; the server says {infos}")
        time.sleep(_POLL)
    for process in writing:
        findings.written.update(_result(process)["written"])
    for process in sampling:
        result = _result(process)
        findings.sampled.update(result["sampled"])
        findings.queued += [tuple(item) for item in result["queued"]]
        findings.grown.append(result["grown"])
    _note(findings, client.server_info())
    return findings


def _note(findings: Findings, infos: Mapping[str, Any]) -> None:
    for name, info in infos.items():
        limiter = info.rate_limiter_info
        findings.inserted[name] = limiter.insert_stats.completed
        findings.drawn[name] = limiter.sample_stats.completed
    inserted = findings.inserted["ratio"]
    if inserted > MIN_SIZE:
        findings.ratios.append(inserted * SAMPLES_PER_INSERT - findings.drawn["ratio"])


def _start(arguments: Mapping[str, Any], unshared: bool) -> subprocess.Popen[str]:
    variables = {"TFRL_REPLAY_TRANSPORT": "tcp"} if unshared else {}
    return subprocess.Popen(
        [sys.executable, "-m", _WORKER, json.dumps(arguments)],
        env=processes.environment_variables(variables),
        cwd=processes.ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _result(process: subprocess.Popen[str]) -> dict[str, Any]:
    output, errors = process.communicate(timeout=_PATIENCE)
    if process.returncode:
        raise RuntimeError(f"a worker failed:\n{errors}")
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    return result


def _signature(name: str) -> Any:
    from tfrl.specs import array_spec

    def spec(*shape: int, dtype: Any) -> array_spec.ArraySpec:
        return array_spec.ArraySpec((_LENGTH, *shape), dtype)

    signature = {
        "writer": spec(dtype=np.int64),
        "number": spec(dtype=np.int64),
        "numbers": spec(8, dtype=np.float32),
    }
    if name == "images":
        signature["image"] = spec(*_IMAGE, dtype=np.uint8)
    return signature
