"""A server's description of its tables, with the fields of Reverb's messages."""

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
    """The options of `Prioritized`."""

    priority_exponent: float = 0.0


@dataclasses.dataclass(frozen=True)
class HeapOptions:
    """The options of `MinHeap` and `MaxHeap`."""

    min_heap: bool = False


@dataclasses.dataclass(frozen=True)
class KeyDistributionOptions:
    """A selector and its options: exactly one of the first five fields is set.

    `distribution` is the name of that field. As in Reverb's messages, the fields that
    are not set have their default values.
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
        del group  # There is one.
        return self.distribution

    def HasField(self, name: str) -> bool:
        """Returns whether the field with this name is set."""
        return self.distribution == name

    @classmethod
    def from_json(cls, options: Mapping[str, Any]) -> KeyDistributionOptions:
        """Creates the options from the result of `ItemSelector.options`."""
        kind = next(name for name in _SELECTORS if name in options)
        fields = {**options, "distribution": kind}
        if kind == "prioritized":
            fields[kind] = PrioritizedOptions(**options[kind])
        elif kind == "heap":
            fields[kind] = HeapOptions(**options[kind])
        return cls(**fields)


@dataclasses.dataclass(frozen=True)
class RateLimiterCallStats:
    """The number of calls that a rate limiter has allowed."""

    completed: int = 0


@dataclasses.dataclass(frozen=True)
class RateLimiterInfo:
    """A rate limiter's four parameters, and its counts."""

    samples_per_insert: float
    min_diff: float
    max_diff: float
    min_size_to_sample: int
    insert_stats: RateLimiterCallStats = RateLimiterCallStats()
    sample_stats: RateLimiterCallStats = RateLimiterCallStats()


@dataclasses.dataclass(frozen=True)
class TableWorkerTime:
    """The time spent by Reverb's table workers; all zeros, as there are no workers."""

    running_ms: int = 0
    sampling_ms: int = 0
    inserting_ms: int = 0
    sleeping_ms: int = 0
    waiting_for_sampling_ms: int = 0
    waiting_for_inserts_ms: int = 0


@dataclasses.dataclass(frozen=True)
class TableInfo:
    """The description and the counts of a table.

    Attributes:
      name: The name of the table.
      sampler_options: The strategy that chooses items to sample.
      remover_options: The strategy that chooses items to remove.
      max_size: The maximum number of items.
      max_times_sampled: The number of samples after which an item is removed; 0 for no
        limit.
      rate_limiter_info: The rate limiter, with the number of inserts and samples so
        far.
      current_size: The number of items.
      num_episodes: The number of episodes from which the items come.
      num_deleted_episodes: The number of episodes whose last item has been deleted.
      num_unique_samples: The number of items that have been sampled at least once.
      num_deleted_items: The number of deleted items.
      total_weight: The sum of the weights by which items are sampled: the sum of the
        powers of priorities with `Prioritized`, else `current_size`.
      signature_json: The signature in the form of `spec_json`; None without one.
      table_worker_time: All zeros; see `TableWorkerTime`.
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
    total_weight: float = 0.0
    signature_json: Any = dataclasses.field(default=None, repr=False)
    table_worker_time: TableWorkerTime = TableWorkerTime()

    @classmethod
    def from_json(cls, info: Mapping[str, Any]) -> TableInfo:
        """Creates the info from the result of a server's `EngineTable.info`."""
        limiter = dict(info["rate_limiter_info"])
        for stats in ("insert_stats", "sample_stats"):
            limiter[stats] = RateLimiterCallStats(limiter[stats]["completed"])
        for bound in ("min_diff", "max_diff"):
            limiter[bound] = float(limiter[bound])  # Infinities are strings.
        same = {field.name for field in dataclasses.fields(cls)} & info.keys()
        fields = {
            **{name: info[name] for name in same},
            "rate_limiter_info": RateLimiterInfo(**limiter),
            "signature_json": info["signature"],
        }
        for role in ("sampler_options", "remover_options"):
            fields[role] = KeyDistributionOptions.from_json(info[role])
        return cls(**fields)

    @classmethod
    def from_serialized_proto(cls, proto_string: bytes) -> TableInfo:
        """Raises an error, since descriptions are not protocol buffers here.

        Raises:
          NotImplementedError: Always.
        """
        raise NotImplementedError(
            f"proto_string: got {len(proto_string)} bytes, but tfrl neither writes nor "
            "reads protocol buffers of tables; take the TableInfo from "
            "Client.server_info."
        )

    @functools.cached_property
    def signature(self) -> Any:
        """The nest of `tf.TensorSpec`s that items must match; None for any items."""
        if self.signature_json is None:
            return None
        return spec_json.decode(self.signature_json)

    @property
    def counts(self) -> rate_limiters.Counts:
        """The counts on which the rate limiter depends."""
        limiter = self.rate_limiter_info
        return rate_limiters.Counts(
            limiter.insert_stats.completed,
            limiter.sample_stats.completed,
            self.num_deleted_items,
        )
