"""Data that survive when processes of a replay service are killed."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from benchmarks import processes
from tests.replay_service import server_process
from tfrl import replay_service as reverb
from tfrl.replay_service.sampling import sampler

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


def test_a_writer_killed_in_an_episode_loses_only_what_it_had_not_flushed():
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
        assert numbers == expected[:size], f"items are {numbers}"
        assert size >= _FLUSHED, f"{size} items, {_FLUSHED} had been flushed"
    finally:
        server.stop()


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
            assert not self.problems, f"clients fail: {self.problems}"
            assert time.monotonic() < deadline, f"clients make no progress: {self}"
            time.sleep(0.01)


@pytest.mark.slow
def test_clients_go_on_with_a_killed_server_that_starts_from_its_checkpoint(tmp_path):
    live = _Live()
    with contextlib.ExitStack() as stack:
        server = server_process.ServerProcess(tmp_path)
        stack.callback(server.close)
        client = reverb.Client(server.address)
        before = _fill(client)
        with live.going_on(server.address):
            live.progress()
            confirmed = live.written
            client.checkpoint()
            live.progress()
            server.kill()
            server = server_process.ServerProcess(tmp_path, server.port)
            stack.callback(server.close)
            assert server.is_up, f"the server did not start: {server.said}"
            at_restart = live.written
            live.progress()
        assert not live.problems, f"clients failed: {live.problems}"
        _check_same(before, _read(client, "kept"))
        numbers = [item.number for item in _read(client, "live").values()]
    assert len(set(numbers)) == len(numbers), "some items are there twice"
    expected = {*range(confirmed), *range(at_restart, live.written)}
    missing = sorted(expected.difference(numbers))
    assert not missing, f"of {live.written} items {missing} are missing"


@pytest.mark.slow
def test_a_checkpoint_that_was_not_finished_is_left_aside_loudly(tmp_path):
    with contextlib.ExitStack() as stack:
        server = server_process.ServerProcess(tmp_path)
        stack.callback(server.close)
        client = reverb.Client(server.address, timeout=1.0)
        before = _fill(client)
        client.checkpoint()
        noise = np.random.default_rng(0).integers(0, 255, _LARGE, np.uint8)
        for _ in range(_LARGE_ITEMS):
            client.insert({"noise": noise}, {"live": 1.0})
        asking = threading.Thread(target=_ask_for_checkpoint, args=(client,))
        asking.start()
        _wait(lambda: any(tmp_path.glob("checkpoints/.*/*")), "nothing is written")
        server.kill()
        asking.join()
        server = server_process.ServerProcess(tmp_path, server.port)
        stack.callback(server.close)
        assert server.is_up, f"the server did not start: {server.said}"
        after = _read(client, "kept")
        _check_same(before, after)
        size = client.server_info()["live"].current_size
        assert not size, f"{size} items of the unfinished checkpoint"
        assert server.said.count("is not used") == 1


def _ask_for_checkpoint(client: Any) -> None:
    with contextlib.suppress(reverb.errors.ReverbError):
        client.checkpoint()


@pytest.mark.slow
def test_a_server_does_not_start_from_a_damaged_checkpoint(tmp_path):
    server = server_process.ServerProcess(tmp_path)
    try:
        client = reverb.Client(server.address)
        _fill(client)
        path = pathlib.Path(client.checkpoint())
    finally:
        server.kill()
    largest = max(path.iterdir(), key=lambda file: file.stat().st_size)
    os.truncate(largest, largest.stat().st_size - 1)
    server = server_process.ServerProcess(tmp_path)
    server.kill()
    assert not server.is_up, "the server started"
    (reason,) = (x for x in server.said.splitlines() if x.startswith("error: "))
    assert "no checkpoint to start from is complete" in reason
    assert largest.name in reason


def _fill(client: Any) -> dict[int, _Item]:
    """Fills the table "kept" and samples it; returns its items."""
    with client.trajectory_writer(2) as writer:
        for i in range(_KEPT):
            writer.append({"number": np.int64(i)})
            item = {"number": writer.history["number"][-1:]}
            writer.create_item("kept", 1.0 + i, item)
    read = _read(client, "kept")
    numbers = sorted(item.number for item in read.values())
    assert numbers == list(range(_KEPT)), f"items are {numbers}"
    return read


def _read(client: Any, table: str) -> dict[int, _Item]:
    """Samples a table until each of its items has come; returns them by key."""
    items: dict[int, _Item] = {}
    size = client.server_info()[table].current_size
    deadline = time.monotonic() + _PATIENCE
    while len(items) < size:
        assert time.monotonic() < deadline, f"only {len(items)} items of {size} come"
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
    assert left == found, f"items are {found}, were {left}"


def _wait(is_so: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.001)
