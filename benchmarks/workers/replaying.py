"""A replay server, its writers and its samplers, by Reverb's names.

The same lines measure Reverb and `tfrl.replay_service`: what differs is the package,
which `with_reverb` and `with_replay_service` give.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.workers import serving

_SIDE = 84
_STEPS = 64  # Different ones, which are repeated.
_READY = 12  # Batches, more than are in flight, in streams and in `prefetch`.
# From a kind of items to the number of steps in one.
LENGTHS = {"small": 2, "stacks": 2, "frames": 5}


class Tasks:
    """What the workers of a replay service do.

    Args:
      package: `reverb` or `tfrl.replay_service`.
    """

    def __init__(self, package: types.ModuleType) -> None:
        self._reverb = package

    def makers(self) -> dict[str, Callable[..., serving.Task]]:
        """The tasks by name."""
        return {
            "server": self.server,
            "write": self.write,
            "sample": self.sample,
            "generate": self.generate,
            "mutate": self.mutate,
        }

    def server(self, tables: dict[str, dict[str, Any]]) -> serving.Task:
        """Serves tables of a kind, a selector and a size each."""
        made = [self._table(name, **options) for name, options in tables.items()]
        server = self._reverb.Server(made, port=None)

        def run(_: int) -> dict[str, int]:
            return {"servers": 1 if server.port else 0}

        return serving.Task(run, {"address": f"localhost:{server.port}"})

    def write(
        self, address: str, table: str, kind: str, flush: int | None, noise: bool
    ) -> serving.Task:
        """Writes items through the trajectory writer.

        Args:
          address: of the server.
          table: that the items go to.
          kind: of `LENGTHS`.
          flush: how many items may be on the way; None flushes only at the end.
          noise: whether images hold noise instead of something that moves.
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
        """Takes batches out of a dataset."""
        dataset = self._reverb.TrajectoryDataset.from_table_signature(
            address,
            table,
            max_in_flight_samples_per_worker=2 * batch,
            num_workers_per_iterator=1,
        )
        iterator = iter(dataset.batch(batch).prefetch(2))

        def prepare() -> None:
            # Batches have been made ready while nothing was measured.
            for _ in range(_READY):
                next(iterator)

        def run(count: int) -> dict[str, int]:
            batches = max(1, count // batch)
            for _ in range(batches):
                next(iterator)
            return {"items": batches * batch}

        return serving.Task(run, prepare=prepare)

    def generate(self, address: str, table: str, items: int) -> serving.Task:
        """Calls `client.sample` for so many items at a time; 0: for all in one call."""
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
        """Sets the priorities of some items, again and again."""
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
    """Answers requests for these tasks; see `serving`."""
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
    """A block that moves over a background, as things do in games."""
    background = rng.integers(0, 255, (_SIDE, _SIDE), np.uint8)
    frames = np.repeat(background[None], _STEPS + depth - 1, 0)
    for i, frame in enumerate(frames):
        at = i % (_SIDE - 12)
        frame[at : at + 12, at : at + 12] = i
    return np.stack([frames[i : i + _STEPS] for i in range(depth)], -1)


def _item(history: Any, length: int) -> dict[str, Any]:
    """Its observations are of all steps, what else there is of two."""
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
