"""The tasks of a replay server, its writers and its samplers, in Reverb's API.

The same code measures Reverb and `tfrl.replay_service`; `with_reverb` and
`with_replay_service` pass the package.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.workers import serving

_SIDE = 84
_STEPS = 64  # Different steps; writers repeat them.
_READY = 12  # Batches; more than streams and `prefetch` have in flight.
# The number of steps in an item, by the kind of items.
LENGTHS = {"small": 2, "stacks": 2, "frames": 5}


class Tasks:
    """The tasks of a replay service's workers."""

    def __init__(self, package: types.ModuleType) -> None:
        """Takes the package to measure.

        Args:
          package: `reverb` or `tfrl.replay_service`.
        """
        self._reverb = package

    def makers(self) -> dict[str, Callable[..., serving.Task]]:
        """Returns the functions that make the tasks, by name."""
        return {
            "server": self.server,
            "write": self.write,
            "sample": self.sample,
            "generate": self.generate,
            "mutate": self.mutate,
        }

    def server(self, tables: dict[str, dict[str, Any]]) -> serving.Task:
        """Makes a server with tables, each with a kind, a selector and a size."""
        made = [self._table(name, **options) for name, options in tables.items()]
        server = self._reverb.Server(made, port=None)

        def run(_: int) -> dict[str, int]:
            return {"servers": 1 if server.port else 0}

        return serving.Task(run, {"address": f"localhost:{server.port}"})

    def write(
        self, address: str, table: str, kind: str, flush: int | None, noise: bool
    ) -> serving.Task:
        """Makes a task that writes items through the trajectory writer.

        Args:
          address: The server's address.
          table: The table that the items go to.
          kind: A kind of `LENGTHS`.
          flush: The number of items that may be in flight; None flushes only at the
            end.
          noise: Whether images hold noise instead of a moving block.
        """
        client = self._reverb.Client(address)
        steps, length = _steps(kind, noise), LENGTHS[kind]

        def run(count: int) -> dict[str, int]:
            with client.trajectory_writer(num_keep_alive_refs=length) as writer:
                for i in range(count + length - 1):
                    writer.append(steps[i % _STEPS])
                    if i >= length - 1:
                        item = _item(writer.history, length)
                        writer.create_item(table, 1.0 + i % 5, item)
                        if flush is not None:
                            writer.flush(block_until_num_items=flush)
            return {"items": count}

        facts = {"step bytes": sum(column.nbytes for column in steps[0].values())}
        return serving.Task(run, facts)

    def sample(self, address: str, table: str, batch: int) -> serving.Task:
        """Makes a task that takes batches from a dataset."""
        dataset = self._reverb.TrajectoryDataset.from_table_signature(
            address,
            table,
            max_in_flight_samples_per_worker=2 * batch,
            num_workers_per_iterator=1,
        )
        iterator = iter(dataset.batch(batch).prefetch(2))

        def prepare() -> None:
            # Discards the batches that were prepared before the measurement.
            for _ in range(_READY):
                next(iterator)

        def run(count: int) -> dict[str, int]:
            batches = max(1, count // batch)
            for _ in range(batches):
                next(iterator)
            return {"items": batches * batch}

        return serving.Task(run, prepare=prepare)

    def generate(self, address: str, table: str, items: int) -> serving.Task:
        """Makes calls of `client.sample` for `items` items; 0 takes all in one call."""
        client = self._reverb.Client(address)

        def run(count: int) -> dict[str, int]:
            each = items or count
            calls = max(1, count // each)
            for _ in range(calls):
                for _ in client.sample(table, each, emit_timesteps=False):
                    pass
            return {"items": calls * each}

        return serving.Task(run)

    def mutate(self, address: str, table: str, keys: int) -> serving.Task:
        """Makes calls that set the priorities of `keys` items."""
        client = self._reverb.Client(address)
        drawn = client.sample(table, keys, emit_timesteps=False)
        updates = {int(sample.info.key): 2.0 for sample in drawn}

        def run(count: int) -> dict[str, int]:
            for _ in range(count):
                client.mutate_priorities(table, updates)
            return {"calls": count}

        return serving.Task(run)

    def _table(self, name: str, kind: str, selector: str, max_size: int) -> Any:
        selectors = self._reverb.selectors
        prioritized = selector == "prioritized"
        return self._reverb.Table(
            name=name,
            sampler=selectors.Prioritized(0.8) if prioritized else selectors.Uniform(),
            remover=selectors.Fifo(),
            max_size=max_size,
            rate_limiter=self._reverb.rate_limiters.MinSize(1),
            signature=_signature(kind),
        )


def serve(package: types.ModuleType, versions: Sequence[str]) -> None:
    """Answers requests for these tasks (see `serving`)."""
    serving.serve(Tasks(package).makers(), versions)


def _steps(kind: str, noise: bool) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    if kind == "small":
        return [
            {
                "observation": rng.standard_normal(4).astype(np.float32),
                "action": np.int64(i % 2),
                "reward": np.float32(1),
                "discount": np.float32(1),
                "step_type": np.int32(1),
            }
            for i in range(_STEPS)
        ]
    depth = 4 if kind == "stacks" else 1
    if noise:
        shape = (_STEPS, _SIDE, _SIDE, depth)
        images = rng.integers(0, 255, shape, np.uint8)
    else:
        images = _moving(rng, depth)
    return [
        {"observation": image, "action": np.int64(i % 2), "reward": np.float32(1)}
        for i, image in enumerate(images)
    ]


def _moving(rng: np.random.Generator, depth: int) -> np.ndarray:
    """Returns images of a block that moves over a background, as in games."""
    background = rng.integers(0, 255, (_SIDE, _SIDE), np.uint8)
    frames = np.repeat(background[None], _STEPS + depth - 1, 0)
    for i, frame in enumerate(frames):
        at = i % (_SIDE - 12)
        frame[at : at + 12, at : at + 12] = i
    return np.stack([frames[i : i + _STEPS] for i in range(depth)], -1)


def _item(history: Any, length: int) -> dict[str, Any]:
    """Returns an item: observations of all its steps, other columns of two steps."""
    return {
        name: column[-length:] if name == "observation" else column[-2:]
        for name, column in history.items()
    }


def _signature(kind: str) -> dict[str, tf.TensorSpec]:
    return {
        name: tf.TensorSpec(
            (LENGTHS[kind] if name == "observation" else 2, *np.shape(value)),
            value.dtype,
        )
        for name, value in _steps(kind, noise=False)[0].items()
    }
