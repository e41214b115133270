"""Measures how long large requests keep a replay server from its other clients.

    python -m benchmarks.service_turns

The server works on one thread, in turns. While a turn lasts, no other client is served.
This prints the longest turn of each scenario, in milliseconds of the server thread's
own processor time, and the requests that were worked on in it. The exit status is 1 if
a turn took longer than the bound. `--items` and `--megabytes` make a shorter run.

Other programs, and the host of a virtual machine, can only lengthen a turn: the first
use of a page of memory takes ten times as long on a busy host. So all scenarios run
three times (`--runs`), each time on a new server, and the shortest of a scenario's
three longest turns counts.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks import check_command, processes
from tfrl import replay_service as reverb
from tfrl.replay_service.sampling.sampler import SampleStream
from tfrl.replay_service.transport import connection

BOUND = 10.0  # Milliseconds.
_WORKER = "benchmarks.workers.timed_server"
_LARGE_TABLE = "large"
_TABLES = {
    "prioritized": (reverb.selectors.Prioritized(0.8), reverb.selectors.Fifo()),
    "uniform": (reverb.selectors.Uniform(), reverb.selectors.Lifo()),
    "heap": (reverb.selectors.MaxHeap(), reverb.selectors.MinHeap()),
}
_BATCH = 4096
_SAMPLES = 50 * _BATCH


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The sizes of the scenarios.

    Attributes:
      items: The number of items of a table.
      megabytes: The size of the largest item.
    """

    items: int = 1_000_000
    megabytes: int = 400


@dataclasses.dataclass(frozen=True)
class Longest:
    """The longest turn of a scenario.

    Attributes:
      scenario: The name of the scenario.
      milliseconds: The processor time of the turn.
      kinds: The messages and requests that were worked on in it.
      turns: The number of turns of the scenario.
    """

    scenario: str
    milliseconds: float
    kinds: Sequence[str]
    turns: int

    def line(self) -> str:
        """Returns a line of the table."""
        kinds = ", ".join(self.kinds) or "sending, receiving"
        return (
            f"{self.scenario:<52} {self.milliseconds:>9.1f} ms  {self.turns:>8,}  "
            f"{kinds}"
        )


class TimedServer:
    """A server in a process of its own that measures its turns."""

    def __init__(self, tables: Sequence[reverb.Table], checkpoints: str) -> None:
        """Starts the server.

        Args:
          tables: Its tables.
          checkpoints: The folder for its checkpoints.
        """
        self._process = subprocess.Popen(
            [sys.executable, "-m", _WORKER],
            cwd=processes.ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        checkpointer = reverb.checkpointers.DefaultCheckpointer(checkpoints)
        config = {
            "tables": [table.to_config() for table in tables],
            "checkpointer": checkpointer.to_config(),
            "seed": 0,
        }
        self.address = f"localhost:{int(self._ask(json.dumps(config)))}"

    def longest(self, scenario: str) -> Longest:
        """Returns the longest turn since the last call."""
        answer = json.loads(self._ask("longest"))
        return Longest(
            scenario, answer["milliseconds"], answer["kinds"], answer["turns"]
        )

    def close(self) -> None:
        """Ends the server."""
        self._process.communicate()

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()


def scenarios(address: str, sizes: Sizes) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yields the scenarios and their names, in the order in which they must run."""
    client = functools.cache(functools.partial(reverb.Client, address))
    yield "connect, server_info", lambda: client().server_info()
    for transport in ("shared", "unix", "tcp"):
        yield from _large_items(address, transport, sizes)
    for table in _TABLES:
        yield from _many_items(address, client, table, sizes)


def _large_items(
    address: str, transport: str, sizes: Sizes
) -> Iterator[tuple[str, Callable[[], object]]]:
    def insert(size: int) -> None:
        with _transport(transport):
            data = {"x": np.zeros(size << 18, np.float32)}
            reverb.Client(address).insert(data, {_LARGE_TABLE: 1.0})

    def sample(num: int) -> None:
        with _transport(transport):
            # The sampler of a dataset reads the server's memory if it can.
            for _ in reverb.Client(address).sample(_LARGE_TABLE, num):
                pass

    def insert_steps(megabytes: int) -> None:
        with _transport(transport):
            client = reverb.Client(address)
            with client.trajectory_writer(num_keep_alive_refs=64) as writer:
                for _ in range(64):
                    writer.append({"x": np.zeros(megabytes << 12, np.float32)})
                column = writer.history["x"][-64:]
                writer.create_item(_LARGE_TABLE, 1.0, {"x": column})

    for size in (sizes.megabytes // 4, sizes.megabytes):
        yield (
            f"insert a step of {size} MB, {transport}",
            functools.partial(insert, size),
        )
        yield f"sample it, {transport}", functools.partial(sample, 1)
        yield f"reset, {transport}", lambda: reverb.Client(address).reset(_LARGE_TABLE)
    yield (
        f"insert 64 steps of {sizes.megabytes} MB in all, {transport}",
        functools.partial(insert_steps, sizes.megabytes),
    )
    yield f"sample them, {transport}", functools.partial(sample, 1)
    yield f"reset, {transport}", lambda: reverb.Client(address).reset(_LARGE_TABLE)


def _many_items(
    address: str, client: Callable[[], reverb.Client], table: str, sizes: Sizes
) -> Iterator[tuple[str, Callable[[], object]]]:
    def fill(count: int) -> None:
        writer = client().trajectory_writer(num_keep_alive_refs=2)
        for i in range(count):
            writer.append({"a": np.float32(i), "b": np.int64(i)})
            history = writer.history
            trajectory = {"a": history["a"][-1:], "b": history["b"][-1:]}
            writer.create_item(table, float(i % 1000), trajectory)
            if i % 50 == 49:
                writer.end_episode(clear_buffers=False)
        writer.close()

    def sample(transport: str, num: int) -> None:
        with _transport(transport):
            stream = SampleStream(
                address, table, max_in_flight=4000, max_samples=num, timeout_ms=1000
            )
            for _ in range(num // _BATCH):
                stream.next_batch(_BATCH)
            stream.close()

    def update(count: int) -> None:
        client().mutate_priorities(
            table, updates=dict.fromkeys(map(_key, range(count)), 2.0)
        )

    def delete(count: int) -> None:
        client().mutate_priorities(table, deletes=[*map(_key, range(count))])

    yield f"insert {sizes.items:,} items, {table}", lambda: fill(sizes.items)
    count = 5 * sizes.items
    yield f"mutate {count:,} keys, {table}", lambda: update(count)
    yield f"delete {count:,} keys, {table}", lambda: delete(count)
    yield f"insert {sizes.items:,} items again, {table}", lambda: fill(sizes.items)
    yield f"insert into the full table, {table}", lambda: fill(sizes.items // 20)
    for transport in ("shared", "unix", "tcp"):
        yield (
            f"sample {_SAMPLES:,} items, {table}, {transport}",
            functools.partial(sample, transport, _SAMPLES),
        )
    yield f"checkpoint, {table}", lambda: client().checkpoint()
    yield f"server_info, {table}", lambda: client().server_info()
    yield f"reset, {table}", lambda: client().reset(table)


def _key(i: int) -> int:
    """Returns the key of an item that was inserted into a table without evictions."""
    return (i << 32) | i


@contextlib.contextmanager
def _transport(name: str) -> Iterator[None]:
    """Makes new clients of this process use a transport."""
    before = os.environ.get(connection.TRANSPORT_VARIABLE)
    os.environ[connection.TRANSPORT_VARIABLE] = name
    try:
        yield
    finally:
        del os.environ[connection.TRANSPORT_VARIABLE]
        if before is not None:
            os.environ[connection.TRANSPORT_VARIABLE] = before


def measure(sizes: Sizes, say: Callable[[str], object] = print) -> list[Longest]:
    """Runs all scenarios on one server; returns the longest turn of each."""
    limiter = reverb.rate_limiters.MinSize(1)
    tables = [
        reverb.Table(name, sampler, remover, sizes.items, limiter)
        for name, (sampler, remover) in _TABLES.items()
    ]
    tables.append(reverb.Table.queue(_LARGE_TABLE, 10))
    measured = []
    with tempfile.TemporaryDirectory() as folder:
        server = TimedServer(tables, folder)
        try:
            server.longest("start")
            for name, run in scenarios(server.address, sizes):
                run()
                measured.append(server.longest(name))
                say(measured[-1].line())
        finally:
            server.close()
    return measured


def shortest(runs: Sequence[Sequence[Longest]]) -> list[Longest]:
    """Returns the shortest of the longest turns of each scenario.

    Args:
      runs: What `measure` returned, at least once.
    """
    return [
        min(of_scenario, key=lambda longest: longest.milliseconds)
        for of_scenario in zip(*runs, strict=True)
    ]


def faults(measured: Sequence[Longest], bound: float = BOUND) -> list[str]:
    """Returns a line for each scenario with a turn above the bound."""
    return [
        f"{longest.scenario}: a turn of {longest.milliseconds:.1f} ms, expected at "
        f"most {bound:g} ms"
        for longest in measured
        if longest.milliseconds > bound
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark; returns the exit status."""
    parser = check_command.parser("service_turns", __doc__)
    parser.add_argument("--items", type=int, default=Sizes.items)
    parser.add_argument("--megabytes", type=int, default=Sizes.megabytes)
    parser.add_argument("--bound", type=float, default=BOUND)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(arguments)
    runs = []
    for run in range(options.runs):
        print(f"Run {run + 1} of {options.runs}:", flush=True)
        runs.append(measure(Sizes(options.items, options.megabytes)))
    measured = shortest(runs)
    longest = max(measured, key=lambda longest: longest.milliseconds)
    print(f"The longest turn that every run had:\n{longest.line()}")
    return check_command.conclude(faults(measured, options.bound))


if __name__ == "__main__":
    sys.exit(main())
