"""Checks which data survive when processes of a replay service are killed.

    python -m benchmarks.service_failures

It kills a writer in the middle of an episode, a server while a writer and a sampler
work, and a server while it writes a checkpoint; and it damages a checkpoint. Each line
gives one of these cases and its outcome; the exit status is 1 if an outcome is wrong.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import processes, server_command

_PATIENCE = 60.0  # Seconds for anything to happen.
_FLUSHED, _NOT_FLUSHED = 100, 30
_KEPT = 50
_LARGE, _LARGE_ITEMS = 4 << 20, 30  # Bytes and items; writing them takes a while.
_WRITER = f"""
import sys, time
import numpy as np
from tfrl import replay_service as reverb
writer = reverb.Client(sys.argv[1]).trajectory_writer(num_keep_alive_refs=2)
for i in range({_FLUSHED + _NOT_FLUSHED} + 1):
    writer.append({{"number": np.int64(i)}})
    if i:
        writer.create_item("kept", 1.0, {{"number": writer.history["number"][-2:]}})
    if i == {_FLUSHED}:
        writer.flush()
print("ready", flush=True)
time.sleep(1000)
"""


@dataclasses.dataclass
class _Item:
    """An item: its data, and how often it was sampled at its first and last reading."""

    number: int
    priority: float
    first: int
    last: int


class Failure(AssertionError):
    """Data are missing that should be there, or are there that should not be."""


def killed_writer() -> str:
    """Checks that a writer killed in an episode loses at most the unflushed items."""
    from tfrl import replay_service as reverb

    table = reverb.Table(
        "kept",
        sampler=reverb.selectors.Fifo(),
        remover=reverb.selectors.Fifo(),
        max_size=1_000,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        max_times_sampled=1,
    )
    server = reverb.Server([table])
    try:
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, f"localhost:{server.port}"],
            cwd=processes.ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        writer.kill()
        writer.communicate()
        client = server.localhost_client()
        size = client.server_info()["kept"].current_size
        numbers = [
            sample.data[0].tolist()
            for sample in client.sample("kept", size, emit_timesteps=False)
        ]
        expected = [[i, i + 1] for i in range(_FLUSHED + _NOT_FLUSHED)]
        _check(numbers == expected[:size], f"items are {numbers}")
        _check(size >= _FLUSHED, f"{size} items, {_FLUSHED} had been flushed")
    finally:
        server.stop()
    return f"{size} items are there, whole and in order, of {_FLUSHED} flushed"


@dataclasses.dataclass
class _Live:
    """The work on the table "live" while the server is killed.

    Attributes:
      written: The number of items that the server has confirmed.
      sampled: The number of samples that have arrived.
      problems: The exceptions of writer and sampler.
    """

    written: int = 0
    sampled: int = 0
    problems: list[BaseException] = dataclasses.field(default_factory=list)
    stopping: threading.Event = dataclasses.field(default_factory=threading.Event)

    def write(self, address: str) -> None:
        """Writes numbered items, and waits for the server after every ten."""
        from tfrl import replay_service as reverb

        count = 0
        with reverb.Client(address).trajectory_writer(2) as writer:
            while not self.stopping.is_set():
                writer.append({"number": np.int64(count)})
                item = {"number": writer.history["number"][-1:]}
                writer.create_item("live", 1.0, item)
                count += 1
                if count % 10 == 0:
                    writer.flush()
                    self.written = count
        self.written = count

    def sample(self, address: str) -> None:
        """Samples the table."""
        from tfrl.replay_service.sampling import sampler

        stream = sampler.SampleStream(address, "live", max_in_flight=16)
        with contextlib.closing(stream):
            while not self.stopping.is_set():
                rows = stream.next_rows(16, timeout=0.1)
                if rows is not None:
                    self.sampled += len(rows[0])

    @contextlib.contextmanager
    def going_on(self, address: str) -> Iterator[None]:
        """Writes and samples in threads while the body runs."""

        def guarded(work: Callable[[str], None]) -> None:
            try:
                work(address)
            except BaseException as error:
                self.problems.append(error)

        threads = [
            threading.Thread(target=guarded, args=(work,))
            for work in (self.write, self.sample)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stopping.set()
            for thread in threads:
                thread.join()

    def progress(self) -> None:
        """Waits until writer and sampler have made progress.

        Raises:
          Failure: It takes too long, or one of them has failed.
        """
        written, sampled = self.written, self.sampled
        deadline = time.monotonic() + _PATIENCE
        while self.written < written + 20 or self.sampled < sampled + 20:
            _check(not self.problems, f"clients fail: {self.problems}")
            _check(time.monotonic() < deadline, f"clients make no progress: {self}")
            time.sleep(0.01)


def killed_server(folder: pathlib.Path) -> str:
    """Checks that a killed server continues from its checkpoint when restarted."""
    from tfrl import replay_service as reverb

    live = _Live()
    with contextlib.ExitStack() as stack:
        server = server_command.ServerCommand(folder)
        stack.callback(server.close)
        client = reverb.Client(server.address)
        before = _fill(client)
        with live.going_on(server.address):
            live.progress()
            confirmed = live.written
            client.checkpoint()
            live.progress()
            server.kill()
            started = time.monotonic()
            server = server_command.ServerCommand(folder, server.port)
            stack.callback(server.close)
            _check(server.is_up, f"the server did not start: {server.said}")
            at_restart = live.written
            live.progress()
            seconds = time.monotonic() - started
        _check(not live.problems, f"clients failed: {live.problems}")
        _check_same(before, _read(client, "kept"))
        numbers = [item.number for item in _read(client, "live").values()]
    _check(len(set(numbers)) == len(numbers), "some items are there twice")
    expected = {*range(confirmed), *range(at_restart, live.written)}
    missing = sorted(expected.difference(numbers))
    _check(not missing, f"of {live.written} items {missing} are missing")
    lost = live.written - len(numbers)
    return (
        f"{len(before)} items unchanged; writer and sampler went on within "
        f"{seconds:.1f} s; lost {lost} of {live.written} items, since the checkpoint"
    )


def killed_while_writing(folder: pathlib.Path) -> str:
    """Checks that a server ignores an unfinished checkpoint and uses the last one."""
    from tfrl import replay_service as reverb

    with contextlib.ExitStack() as stack:
        server = server_command.ServerCommand(folder)
        stack.callback(server.close)
        client = reverb.Client(server.address, timeout=1.0)
        before = _fill(client)
        client.checkpoint()
        noise = np.random.default_rng(0).integers(0, 255, _LARGE, np.uint8)
        for _ in range(_LARGE_ITEMS):
            client.insert({"noise": noise}, {"live": 1.0})
        asking = threading.Thread(target=_ask_for_checkpoint, args=(client,))
        asking.start()
        _wait(lambda: any(folder.glob("checkpoints/.*/*")), "nothing is written")
        server.kill()
        asking.join()
        server = server_command.ServerCommand(folder, server.port)
        stack.callback(server.close)
        _check(server.is_up, f"the server did not start: {server.said}")
        after = _read(client, "kept")
        _check_same(before, after)
        size = client.server_info()["live"].current_size
        _check(not size, f"{size} items of the unfinished checkpoint")
        (said,) = [line for line in server.said.splitlines() if "not used" in line]
    return said.strip()


def _ask_for_checkpoint(client: Any) -> None:
    from tfrl import replay_service as reverb

    with contextlib.suppress(reverb.errors.ReverbError):
        client.checkpoint()


def damaged_checkpoint(folder: pathlib.Path) -> str:
    """Checks that a server does not start from a truncated checkpoint."""
    from tfrl import replay_service as reverb

    server = server_command.ServerCommand(folder)
    try:
        client = reverb.Client(server.address)
        _fill(client)
        path = pathlib.Path(client.checkpoint())
    finally:
        server.kill()
    largest = max(path.iterdir(), key=lambda file: file.stat().st_size)
    os.truncate(largest, largest.stat().st_size - 1)
    server = server_command.ServerCommand(folder)
    server.kill()
    _check(not server.is_up, "the server started")
    reason = server.said.strip().splitlines()[-1]
    _check("is complete" in reason and largest.name in reason, f"it said {server.said}")
    return "refused: " + reason


def _fill(client: Any) -> dict[int, _Item]:
    """Fills the table "kept" and samples it; returns its items."""
    with client.trajectory_writer(2) as writer:
        for i in range(_KEPT):
            writer.append({"number": np.int64(i)})
            item = {"number": writer.history["number"][-1:]}
            writer.create_item("kept", 1.0 + i, item)
    read = _read(client, "kept")
    numbers = sorted(item.number for item in read.values())
    _check(numbers == list(range(_KEPT)), f"items are {numbers}")
    return read


def _read(client: Any, table: str) -> dict[int, _Item]:
    """Samples a table until each of its items has come; returns them by key."""
    items: dict[int, _Item] = {}
    size = client.server_info()[table].current_size
    deadline = time.monotonic() + _PATIENCE
    while len(items) < size:
        _check(time.monotonic() < deadline, f"only {len(items)} items of {size} come")
        for info, data in client.sample(table, 4 * size, emit_timesteps=False):
            times = info.times_sampled
            item = items.setdefault(
                info.key, _Item(int(data[0][0]), info.priority, times, times)
            )
            item.last = times
    return items


def _check_same(before: dict[int, _Item], after: dict[int, _Item]) -> None:
    """Checks that no item was sampled or changed between two readings."""
    left = {
        key: (item.number, item.priority, item.last) for key, item in before.items()
    }
    found = {
        key: (item.number, item.priority, item.first - 1) for key, item in after.items()
    }
    _check(left == found, f"items are {found}, were {left}")


def _wait(is_so: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not is_so():
        _check(time.monotonic() < deadline, otherwise)
        time.sleep(0.001)


def _check(is_right: bool, what: str) -> None:
    if not is_right:
        raise Failure(what)


def main() -> int:
    """Runs all checks; returns the exit status."""
    failures = 0
    works: dict[str, Callable[..., str]] = {
        "writer killed in an episode": lambda _: killed_writer(),
        "server killed at work": killed_server,
        "server killed while it writes a checkpoint": killed_while_writing,
        "checkpoint cut short": damaged_checkpoint,
    }
    for what, work in works.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"{what}: {work(pathlib.Path(folder))}", flush=True)
            except Failure as failure:
                failures += 1
                print(f"{what}: WRONG: {failure}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
