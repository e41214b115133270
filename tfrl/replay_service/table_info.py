"""What a server says of its tables, with the fields of Reverb's messages."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from tfrl.replay_service import rate_limiters
from tfrl.specs import spec_json

_SELECTORS = ("fifo", "uniform", "prioritized", "heap", "lifo")


@dataclasses.dataclass(frozen=True)
class PrioritizedOptions:
    """How `Prioritized` weighs."""

    priority_exponent: float = 0.0


@dataclasses.dataclass(frozen=True)
class HeapOptions:
    """Which end of a heap is chosen."""

    min_heap: bool = False


@dataclasses.dataclass(frozen=True)
class KeyDistributionOptions:
    """A selector: the one of the first five fields that is set.

    As in Reverb's messages, the others read as if they were empty.
    """

    fifo: bool = False
    uniform: bool = False
    prioritized: PrioritizedOptions = PrioritizedOptions()
    heap: HeapOptions = HeapOptions()
    lifo: bool = False
    is_deterministic: bool = False
    distribution: str | None = None

    def WhichOneof(self, group: str = "distribution") -> str | None:
        """Returns the name of the field that is set."""
        return self.distribution

    def HasField(self, name: str) -> bool:
        """Whether the field of this name is the one that is set."""
        return self.distribution == name

    @classmethod
    def from_json(cls, options: Mapping[str, Any]) -> KeyDistributionOptions:
        """Returns what `ItemSelector.options` has described."""
        kind = next(name for name in _SELECTORS if name in options)
        fields = {**options, "distribution": kind}
        if kind == "prioritized":
            fields[kind] = PrioritizedOptions(**options[kind])
        elif kind == "heap":
            fields[kind] = HeapOptions(**options[kind])
        return cls(**fields)


@dataclasses.dataclass(frozen=True)
class RateLimiterCallStats:
    """How many calls a limiter has let through."""

    completed: int = 0


@dataclasses.dataclass(frozen=True)
class RateLimiterInfo:
    """A limiter's four numbers, and what it has let through."""

    samples_per_insert: float
    min_diff: float
    max_diff: float
    min_size_to_sample: int
    insert_stats: RateLimiterCallStats = RateLimiterCallStats()
    sample_stats: RateLimiterCallStats = RateLimiterCallStats()


@dataclasses.dataclass(frozen=True)
class TableWorkerTime:
    """Where Reverb's tables have spent their time; ours have no workers."""

    running_ms: int = 0
    sampling_ms: int = 0
    inserting_ms: int = 0
    sleeping_ms: int = 0
    waiting_for_sampling_ms: int = 0
    waiting_for_inserts_ms: int = 0


@dataclasses.dataclass(frozen=True)
class TableInfo:
    """What a table is, and how much it has seen and holds.

    Attributes:
      name: The table's.
      sampler_options: How items are chosen for sampling.
      remover_options: How items are chosen to be removed.
      max_size: How many items there are at most.
      max_times_sampled: After how many samples an item is removed; 0 for no limit.
      rate_limiter_info: The limiter, with the number of inserts and samples so far.
      current_size: How many items there are.
      num_episodes: Of how many episodes.
      num_deleted_episodes: How many have gone with their last item.
      num_unique_samples: How many items have been sampled at least once.
      num_deleted_items: How many items have been deleted.
      signature_json: See `spec_json`; None if there is no signature.
      table_worker_time: Zeros.
    """

    name: str
    sampler_options: KeyDistributionOptions
    remover_options: KeyDistributionOptions
    max_size: int
    max_times_sampled: int
    rate_limiter_info: RateLimiterInfo
    current_size: int = 0
    num_episodes: int = 0
    num_deleted_episodes: int = 0
    num_unique_samples: int = 0
    num_deleted_items: int = 0
    signature_json: Any = dataclasses.field(default=None, repr=False)
    table_worker_time: TableWorkerTime = TableWorkerTime()

    @classmethod
    def from_json(cls, info: Mapping[str, Any]) -> TableInfo:
        """Returns what a server has said of a table."""
        limiter = dict(info["rate_limiter_info"])
        for stats in ("insert_stats", "sample_stats"):
            limiter[stats] = RateLimiterCallStats(limiter[stats]["completed"])
        for bound in ("min_diff", "max_diff"):
            limiter[bound] = float(limiter[bound])  # Infinities come as text.
        return cls(
            name=info["name"],
            sampler_options=KeyDistributionOptions.from_json(info["sampler_options"]),
            remover_options=KeyDistributionOptions.from_json(info["remover_options"]),
            max_size=info["max_size"],
            max_times_sampled=info["max_times_sampled"],
            rate_limiter_info=RateLimiterInfo(**limiter),
            current_size=info["current_size"],
            num_episodes=info["num_episodes"],
            num_deleted_episodes=info["num_deleted_episodes"],
            num_unique_samples=info["num_unique_samples"],
            num_deleted_items=info["num_deleted_items"],
            signature_json=info["signature"],
        )

    @functools.cached_property
    def signature(self) -> Any:
        """The nest of `tf.TensorSpec`s that items match, or None."""
        if self.signature_json is None:
            return None
        return spec_json.decode(self.signature_json)

    @property
    def counts(self) -> rate_limiters.Counts:
        """What the limiter goes by."""
        limiter = self.rate_limiter_info
        return rate_limiters.Counts(
            limiter.insert_stats.completed,
            limiter.sample_stats.completed,
            self.num_deleted_items,
        )
