"""Describes the tables of items that a server holds."""

from __future__ import annotations

import abc
import numbers
import weakref
from collections.abc import Mapping, Sequence, Sized
from typing import Any, Protocol

from tfrl.replay_service import (
    item_selectors,
    rate_limiters,
    table_info,
)
from tfrl.specs import spec_json


class TableServer(Protocol):
    """The part of `server.Server` that a table uses."""

    def table_info(self, name: str) -> table_info.TableInfo:
        """Returns the `TableInfo` of the table with this name."""


class TableExtensionBase(metaclass=abc.ABCMeta):
    """Reverb's base class of table extensions, which are not supported here."""

    @abc.abstractmethod
    def build_internal_extensions(self, table_name: str) -> Sequence[Any]:
        """Builds the extensions of a table."""


class Table:
    """A table of items, with strategies for sampling, removal and rate limiting.

    An item is a trajectory: a list of steps for each column of the signature.
    Overlapping items share their steps. A full table removes an item for each new item.
    The rate limiter makes samplers and writers wait for each other.

    A `Table` only describes a table for a `Server`, which holds the items. Once a
    server uses the description, `info` returns the server's counts.
    """

    def __init__(
        self,
        name: str,
        sampler: item_selectors.ItemSelector,
        remover: item_selectors.ItemSelector,
        max_size: int,
        rate_limiter: rate_limiters.RateLimiter,
        max_times_sampled: int = 0,
        extensions: Sequence[TableExtensionBase] = (),
        signature: Any = None,
    ):
        """Creates the description of a table.

        Args:
          name: The name of the table.
          sampler: The strategy that chooses items to sample.
          remover: The strategy that chooses items to remove from a full table.
          max_size: The maximum number of items.
          rate_limiter: Decides when inserts and samples wait for each other.
          max_times_sampled: The number of samples after which an item is removed; below
            1 for no limit.
          extensions: Must be empty: Reverb's extensions are written in C++.
          signature: A nest of `tf.TensorSpec`s that each item must match, including the
            time dimension; None to accept any items.

        Raises:
          ValueError: If the name is empty, `max_size` is not positive, the table can
            never satisfy the rate limiter, a leaf of the signature is not a spec of
            numbers, or there are extensions.
          TypeError: If a selector or the rate limiter is of another type, or a size is
            no whole number.
        """
        if not isinstance(name, str) or not name:
            raise ValueError(f"name must be nonempty, got {name!r}.")
        max_size = _whole("max_size", max_size)
        max_times_sampled = _whole("max_times_sampled", max_times_sampled)
        if max_size <= 0:
            raise ValueError(f"max_size ({max_size}) must be a positive integer")
        _check_kind("sampler", sampler, item_selectors.ItemSelector)
        _check_kind("remover", remover, item_selectors.ItemSelector)
        _check_kind("rate_limiter", rate_limiter, rate_limiters.RateLimiter)
        if len(extensions):
            raise ValueError(
                f"extensions: got {extensions!r}, expected none, because Reverb's are "
                "written in C++ and there are no others; leave them out."
            )
        rate_limiters.check_satisfiable(rate_limiter, max_size, max_times_sampled)
        self._name = name
        self._sampler = sampler
        self._remover = remover
        self._max_size = max_size
        self._rate_limiter = rate_limiter
        self._max_times_sampled = max(0, max_times_sampled)
        self._signature = signature
        # An empty nest means the same as None.
        is_empty = signature is None or (
            isinstance(signature, Sized) and not len(signature)
        )
        self._signature_json = None if is_empty else spec_json.encode(signature)
        self._server: weakref.ref[TableServer] | None = None

    @classmethod
    def queue(
        cls,
        name: str,
        max_size: int,
        extensions: Sequence[TableExtensionBase] = (),
        signature: Any = None,
    ) -> Table:
        """Returns a table whose items are sampled once, the oldest first.

        Inserts wait while the table is full.

        Args:
          name: The name of the table.
          max_size: The maximum number of items.
          extensions: Must be empty; see the constructor.
          signature: See the constructor.
        """
        selector, limiter = item_selectors.Fifo(), rate_limiters.Queue(max_size)
        return cls(
            name, selector, selector, max_size, limiter, 1, extensions, signature
        )

    @classmethod
    def stack(
        cls,
        name: str,
        max_size: int,
        extensions: Sequence[TableExtensionBase] = (),
        signature: Any = None,
    ) -> Table:
        """Returns a table whose items are sampled once, the newest first.

        Inserts wait while the table is full.

        Args:
          name: The name of the table.
          max_size: The maximum number of items.
          extensions: Must be empty; see the constructor.
          signature: See the constructor.
        """
        selector, limiter = item_selectors.Lifo(), rate_limiters.Stack(max_size)
        return cls(
            name, selector, selector, max_size, limiter, 1, extensions, signature
        )

    @property
    def name(self) -> str:
        """The name of the table."""
        return self._name

    @property
    def rate_limiter(self) -> rate_limiters.RateLimiter:
        """The rate limiter."""
        return self._rate_limiter

    @property
    def info(self) -> table_info.TableInfo:
        """The table's description and counts, from its server if there is one.

        Raises:
          ReplayUnavailable: If the server has been stopped.
        """
        server = None if self._server is None else self._server()
        if server is not None:
            return server.table_info(self._name)
        from tfrl.replay_service.engine.tables.engine_table import EngineTable

        return table_info.TableInfo.from_json(EngineTable(self.to_config()).info())

    def can_sample(self, num_samples: int) -> bool:
        """Returns whether the rate limiter allows this number of samples now."""
        return rate_limiters.can_sample(
            self._rate_limiter, self.info.counts, num_samples
        )

    def can_insert(self, num_inserts: int) -> bool:
        """Returns whether the rate limiter allows this number of inserts now."""
        return rate_limiters.can_insert(
            self._rate_limiter, self.info.counts, num_inserts
        )

    def replace(
        self,
        name: str | None = None,
        sampler: item_selectors.ItemSelector | None = None,
        remover: item_selectors.ItemSelector | None = None,
        max_size: int | None = None,
        rate_limiter: rate_limiters.RateLimiter | None = None,
        max_times_sampled: int | None = None,
        extensions: Sequence[TableExtensionBase] | None = None,
        signature: Any = None,
    ) -> Table:
        """Returns a new, empty table; arguments that are not None replace its settings.

        Args:
          name: See the constructor.
          sampler: See the constructor.
          remover: See the constructor.
          max_size: See the constructor.
          rate_limiter: See the constructor.
          max_times_sampled: See the constructor.
          extensions: See the constructor.
          signature: See the constructor.
        """

        def pick(given: Any, own: Any) -> Any:
            return own if given is None else given

        return Table(
            name=pick(name, self._name),
            sampler=pick(sampler, self._sampler),
            remover=pick(remover, self._remover),
            max_size=pick(max_size, self._max_size),
            rate_limiter=pick(rate_limiter, self._rate_limiter),
            max_times_sampled=pick(max_times_sampled, self._max_times_sampled),
            extensions=pick(extensions, ()),
            signature=pick(signature, self._decoded_signature()),
        )

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Table:
        """Returns the table that a configuration from `to_config` describes.

        Raises:
          ValueError: If the configuration is invalid.
        """
        table = cls(
            config["name"],
            item_selectors.from_config(config["sampler"]),
            item_selectors.from_config(config["remover"]),
            config["max_size"],
            rate_limiters.from_config(config["rate_limiter"]),
            config.get("max_times_sampled", 0),
        )
        if config.get("signature") is not None:
            spec_json.leaves(config["signature"])  # A check without TensorFlow.
            table._signature_json = config["signature"]
        return table

    def to_config(self) -> dict[str, Any]:
        """Returns the configuration of the table for a server, as a JSON object."""
        return {
            "name": self._name,
            "sampler": self._sampler.to_config(),
            "remover": self._remover.to_config(),
            "max_size": self._max_size,
            "max_times_sampled": self._max_times_sampled,
            "rate_limiter": self._rate_limiter.to_config(),
            "signature": self._signature_json,
        }

    def __repr__(self) -> str:
        """Returns a readable description."""
        return (
            f"Table(sampler={self._sampler}, remover={self._remover}, "
            f"max_size={self._max_size}, max_times_sampled={self._max_times_sampled}, "
            f"name={self._name}, rate_limiter={self._rate_limiter}, "
            f"signature={self._decoded_signature()})"
        )

    def _decoded_signature(self) -> Any:
        if self._signature is None and self._signature_json is not None:
            self._signature = spec_json.decode(self._signature_json)
        return self._signature


def _check_kind(argument: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(
            f"{argument}: got {value!r} of type {type(value).__name__}, expected a "
            f"{kind.__name__}, such as those in tfrl.replay_service."
            f"{kind.__module__.rpartition('.')[2]}."
        )


def _whole(name: str, value: Any) -> int:
    """Returns a number without a fraction, such as 1e6, as an integer."""
    if isinstance(value, numbers.Real) and (number := float(value)).is_integer():
        return int(number)
    raise TypeError(f"{name}: got {value!r}, expected a whole number; round it.")
