"""Writers and samplers of items whose contents identify them.

    python -m tests.replay_service.stress_worker '{"role": "writer", ...}'

Each prints a line of JSON at its end. A writer works for the given seconds, a sampler
until its standard input ends.
"""

from __future__ import annotations

import collections
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.workers import memory
from tfrl import replay_service as reverb
from tfrl.replay_service.sampling import sampler

TABLES = ("queue", "ratio", "images")
IMAGE = (84, 84)
LENGTH = 3  # Steps in an item; successive items share two.
_PIXELS = np.arange(IMAGE[0] * IMAGE[1]).reshape(IMAGE)
_EPISODE = 50  # Steps.
_POLL, _LAST = 0.2, 1.0  # Seconds to wait for samples, and for the last ones.


def step(writer: int, number: int, table: str) -> dict[str, np.ndarray]:
    """Makes a step that differs from all others, and from a mixture of two."""
    made = {
        "writer": np.int64(writer),
        "number": np.int64(number),
        "numbers": _numbers(writer, number),
    }
    if table == "images":
        made["image"] = _image(writer, number)
    return made


def _numbers(writer: Any, number: Any) -> np.ndarray:
    seed = np.asarray(writer * 1_000_003 + number * 7919)
    return (seed[..., None] * np.arange(1, 9) % 65_521).astype(np.float32)


def _image(writer: Any, number: Any) -> np.ndarray:
    seed = np.asarray(writer * 101 + number * 31)
    return ((_PIXELS * 7 + seed[..., None, None]) % 251).astype(np.uint8)


def check(columns: dict[str, np.ndarray]) -> None:
    """Checks a batch of items, `[n, LENGTH, ...]` each.

    Raises:
      AssertionError: An item's steps are not successive, of several writers, or torn.
    """
    writer, number = columns["writer"], columns["number"]
    assert np.all(writer == writer[:, :1]), f"of several writers: {writer}"
    assert np.all(np.diff(number) == 1), f"not successive: {number}"
    assert np.all(columns["numbers"] == _numbers(writer, number)), "torn numbers"
    if "image" in columns:
        assert np.all(columns["image"] == _image(writer, number)), "a torn image"


def write(address: str, writer: int, table: str, seconds: float) -> int:
    """Writes for `seconds`; returns the number of items."""
    client = reverb.Client(address)
    count = 0
    end = time.monotonic() + seconds
    names = sorted(step(0, 0, table))
    with client.trajectory_writer(num_keep_alive_refs=LENGTH) as trajectory:
        number = age = 0
        while time.monotonic() < end:
            trajectory.append(step(writer, number, table))
            number, age = number + 1, age + 1
            if age >= LENGTH:
                history = trajectory.history
                item = {name: history[name][-LENGTH:] for name in names}
                trajectory.create_item(table, 1.0 + number % 7, item)
                count += 1
                trajectory.flush(block_until_num_items=128)
            if age == _EPISODE:
                trajectory.end_episode()
                age = 0
    return count


def batches(
    address: str, table: str, stopping: threading.Event
) -> Iterator[dict[str, np.ndarray]]:
    """Yields batches of a table's items, until `stopping` is set and no more arrive."""
    names = sorted(step(0, 0, table))
    stream = sampler.SampleStream(address, table, max_in_flight=64)
    try:
        while True:
            is_end = stopping.is_set()
            rows = stream.next_rows(64, timeout=_LAST if is_end else _POLL)
            if rows is not None:
                yield dict(zip(names, rows[-len(names) :], strict=True))
            if is_end and (rows is None or table != "queue"):
                return
    finally:
        stream.close()


def dataset_batches(
    address: str, table: str, stopping: threading.Event
) -> Iterator[dict[str, np.ndarray]]:
    """Yields batches of a table's items from a dataset, until `stopping` is set."""
    dataset = reverb.TrajectoryDataset.from_table_signature(
        address, table, max_in_flight_samples_per_worker=64
    )
    for sample in dataset.batch(16).prefetch(1):
        yield {name: column.numpy() for name, column in sample.data.items()}
        if stopping.is_set():
            return


def work_as_writer(address: str, number: int, seconds: float) -> dict[str, Any]:
    """Writes to all tables at the same time; returns the number of items for each."""
    counts: dict[str, int] = {}

    def run(table: str) -> None:
        counts[table] = write(address, number, table, seconds)

    _all_at_once({table: lambda table=table: run(table) for table in TABLES})
    return {"written": counts}


def work_as_sampler(address: str, dataset: bool) -> dict[str, Any]:
    """Samples all tables at the same time; returns counts and the queue's items."""
    stopping = threading.Event()
    counts: collections.Counter[str] = collections.Counter()
    queued: list[list[int]] = []
    grown: list[int] = []

    def run(table: str) -> None:
        get = dataset_batches if dataset and table == "images" else batches
        for columns in get(address, table, stopping):
            check(columns)
            counts[table] += len(columns["number"])
            if table == "queue":
                first = columns["writer"][:, 0], columns["number"][:, 0]
                queued.extend(np.stack(first, 1).tolist())
            if table == "images":
                grown.append(memory.resident())

    def wait() -> None:
        sys.stdin.read()
        stopping.set()

    threading.Thread(target=wait, daemon=True).start()
    _all_at_once({table: lambda table=table: run(table) for table in TABLES})
    third = grown[len(grown) // 3] if grown else 0
    return {
        "sampled": dict(counts),
        "queued": queued,
        "grown": grown[-1] - third if grown else 0,
    }


def _all_at_once(jobs: dict[str, Callable[[], None]]) -> None:
    """Runs jobs, each in a thread.

    Raises:
      RuntimeError: A job failed.
    """
    failures: dict[str, BaseException] = {}

    def guarded(name: str) -> None:
        try:
            jobs[name]()
        except BaseException as error:
            failures[name] = error

    threads = [threading.Thread(target=guarded, args=(name,)) for name in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise RuntimeError(f"failed: {failures}")


_ROLES: dict[str, Callable[..., dict[str, Any]]] = {
    "writer": work_as_writer,
    "sampler": work_as_sampler,
}

if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    print(json.dumps(_ROLES[arguments.pop("role")](**arguments)), flush=True)
