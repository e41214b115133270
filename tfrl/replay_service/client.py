"""The client of a replay server."""

from __future__ import annotations

import functools
import numbers
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tree

from tfrl.replay_service import client_pools, errors, table_info
from tfrl.replay_service.client_pools import ControlConnections
from tfrl.replay_service.replay_sample import ReplaySample
from tfrl.replay_service.trajectory_writer import TrajectoryWriter
from tfrl.replay_service.transport import addresses, wire
from tfrl.replay_service.transport import connection as connections
from tfrl.replay_service.writing.sequence_writer import Writer
from tfrl.specs import spec_json

if TYPE_CHECKING:
    from tfrl.replay_service.structured_writer import Config, StructuredWriter

_UNLIMITED = 1_000_000  # The number of items that stands for no limit.


class Client:
    """A client of a replay server. All threads of a process may use it.

        client = Client("localhost:8000")
        client.insert({"observation": observation}, priorities={"table": 1.0})
        for sample in client.sample("table", num_samples=2):
            ...

    A client connects when it is first used. Use `trajectory_writer` to write many
    items, and `TrajectoryDataset` or `TimestepDataset` to train from samples.

    A client can be pickled. The pickle contains a token that was passed as an argument,
    but not a token from the environment: the other process reads its own environment.
    """

    def __init__(
        self,
        server_address: str,
        *,
        token: str | None = None,
        tls_root_certificates: bytes | None = None,
        timeout: float = 30.0,
    ):
        """Creates a client without connecting.

        Args:
          server_address: "host:port".
          token: The server's token, if it has one; by default the environment variable
            TFRL_REPLAY_TOKEN.
          tls_root_certificates: Root certificates (PEM) that verify the server's
            certificate; empty for the system's root certificates; by default the file
            that the environment variable TFRL_REPLAY_TLS_CERTIFICATE names. If there is
            neither, the connection is not encrypted.
          timeout: The number of seconds to keep trying to reach the server.

        Raises:
          ValueError: If the address has no port.
        """
        addresses.split(server_address)
        self._server_address = server_address
        self._access: dict[str, Any] = {
            "token": token,
            "tls_root_certificates": tls_root_certificates,
            "timeout": timeout,
        }
        self._control = ControlConnections(functools.partial(self._connect, "control"))
        self._inserts = client_pools.ClientInserts(
            functools.partial(self._trajectory_writer, 1, by_steps=True)
        )
        self._samples = client_pools.ClientSamples(server_address, self._access)

    def __reduce__(self) -> Any:
        """Pickles the address and the arguments of the constructor."""
        return _make_client, (self._server_address, self._access)

    def __repr__(self) -> str:
        """Returns a readable description."""
        return f"Client, server_address={self._server_address}"

    @property
    def server_address(self) -> str:
        """The address of the server."""
        return self._server_address

    def insert(self, data: Any, priorities: Mapping[str, float]) -> None:
        """Inserts an item that consists of a single step into one or more tables.

        Waits for the tables' rate limiters. When sampled, the item has a first
        dimension of 1, even if the data is a trajectory. `TimestepDataset` removes it.

        Args:
          data: A nest of arrays and numbers.
          priorities: The priority in each table.

        Raises:
          ValueError: If `priorities` is empty, a table does not exist, its signature
            does not match, a priority is negative or not finite, or a leaf of the data
            does not consist of numbers.
          ReplayUnavailable: If no server answers.
        """
        self._inserts.insert(data, priorities)

    def writer(
        self,
        max_sequence_length: int,
        delta_encoded: bool = False,
        chunk_length: int | None = None,
        max_in_flight_items: int | None = 25,
    ) -> Writer:
        """Returns a writer whose items consist of the most recent steps.

        The writers of `trajectory_writer` are more flexible.

        Args:
          max_sequence_length: The maximum number of steps of an item.
          delta_encoded: Not used: steps are not encoded here.
          chunk_length: Checked but not used: steps are not stored in chunks here.
          max_in_flight_items: The number of unconfirmed items at which `create_item`
            waits for the server; None for no limit.

        Raises:
          ValueError: If a number is below 1, or `chunk_length` is above
            `max_sequence_length`.
          ReplayUnavailable: If no server answers.
        """
        del delta_encoded
        if max_sequence_length < 1:
            raise ValueError(
                f"max_sequence_length ({max_sequence_length}) must be a positive "
                "integer"
            )
        if chunk_length is not None and not 1 <= chunk_length <= max_sequence_length:
            raise ValueError(
                f"chunk_length ({chunk_length}) must be a positive integer le to "
                f"max_sequence_length ({max_sequence_length})"
            )
        if max_in_flight_items is None:
            max_in_flight_items = _UNLIMITED
        if max_in_flight_items < 1:
            raise ValueError(
                f"max_in_flight_items ({max_in_flight_items}) must be a positive "
                "integer"
            )
        writer = self._trajectory_writer(max_sequence_length, by_steps=True)
        return Writer(writer, max_sequence_length, max_in_flight_items)

    def trajectory_writer(
        self, num_keep_alive_refs: int, *, validate_items: bool = True
    ) -> TrajectoryWriter:
        """Returns a writer of items that share steps; see `TrajectoryWriter`.

        Args:
          num_keep_alive_refs: The number of recent steps that items can refer to.
          validate_items: Whether `create_item` checks items against the tables'
            signatures; if False, the server checks them, and a later call raises the
            error.

        Raises:
          ValueError: If `num_keep_alive_refs` < 1.
          ReplayUnavailable: If no server answers.
        """
        return self._trajectory_writer(
            num_keep_alive_refs, validate_items=validate_items
        )

    def structured_writer(self, configs: Sequence[Config]) -> StructuredWriter:
        """Returns a writer that creates items by rules; see `StructuredWriter`.

        Args:
          configs: The rules; see `structured_writer.create_config`.

        Raises:
          ValueError: If there is no rule, or a rule cannot create items.
          ReplayUnavailable: If no server answers.
        """
        if not configs:
            raise ValueError("At least one config must be provided.")
        from tfrl.replay_service import structured_writer
        from tfrl.replay_service.patterns import configs as patterns

        patterns.check_configs(configs)
        writer = self.trajectory_writer(patterns.history_length(configs))
        return structured_writer.StructuredWriter(writer, configs)

    def sample(
        self,
        table: str,
        num_samples: int = 1,
        *,
        emit_timesteps: bool = True,
        unpack_as_table_signature: bool = False,
    ) -> Iterator[Any]:
        """Samples items one by one, and waits for the table's rate limiter.

        The server draws up to 64 items ahead of their use.

        Args:
          table: The name of the table.
          num_samples: The number of items.
          emit_timesteps: Whether to split items into their steps.
          unpack_as_table_signature: Whether to return the data in the structure of the
            table's signature, if the table has one, instead of as a list.

        Yields:
          For each item, a list with a `ReplaySample` per step; with
          `emit_timesteps=False`, a single `ReplaySample`.

        Raises:
          TypeError: If `num_samples` is not an integer.
          ValueError: If `num_samples` is 0, or an item cannot be split because its
            columns have different lengths, or `unpack_as_table_signature` is True and
            there is no such table.
          RuntimeError: If there is no such table.
          ReplayUnavailable: If no server answers.
        """
        structure = None
        if unpack_as_table_signature:
            structure = self._structure(table)
        _check_integer("num_samples", num_samples, -1)
        if num_samples == 0:
            raise ValueError("max_samples (0) must be -1 or >= 1")
        if table not in self._control.tables():
            raise RuntimeError(f"Priority table {table} was not found")
        for info, data in self._samples.draw(table, num_samples):
            if emit_timesteps:
                steps = client_pools.steps(data)
                yield [ReplaySample(info, _unflatten(structure, s)) for s in steps]
            else:
                yield ReplaySample(info, _unflatten(structure, data))

    def sample_batch(self, table: str, batch_size: int) -> ReplaySample:
        """Samples items as one batch, and waits for the table's rate limiter.

        The server draws exactly these items, after all inserts that it has confirmed,
        so a server with a seed draws the same for the same calls. A `TrajectoryDataset`
        draws ahead, and is faster.

        Args:
          table: The name of the table.
          batch_size: The number of items `B`.

        Returns:
          A `ReplaySample` of arrays: the fields of `info` are `[B]`, and the data
          `[B, ...]` have the structure of the table's signature, if it has one, else
          are a list.

        Raises:
          TypeError: If `batch_size` is not an integer.
          ValueError: If `batch_size` is less than 1, there is no such table, or the
            items differ in shape.
          ReplayUnavailable: If no server answers.
        """
        _check_integer("batch_size", batch_size, 1)
        structure = self._structure(table)
        info, data = self._samples.draw_batch(table, batch_size)
        return ReplaySample(info, _unflatten(structure, data))

    def mutate_priorities(
        self,
        table: str,
        updates: Mapping[int, float] | None = None,
        deletes: Sequence[int] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Deletes items, then updates priorities of other items. Ignores unknown keys.

        A call with thousands of keys is applied in slices. The server can answer other
        clients' requests between two of them. If a priority is invalid, nothing is
        changed.

        Args:
          table: The name of the table.
          updates: The new priority of each item, at least 0, by the key of the item.
          deletes: The keys of the items to delete.
          timeout: The number of seconds to wait. With None, only the attempts to reach
            the server have a limit: the client's own timeout.

        Raises:
          DeadlineExceededError: If `timeout` seconds pass without an answer.
          ValueError: If a priority is negative or not finite, or a key is out of the
            range of uint64.
          TypeError: If a key is not an integer, or a priority no number.
          RuntimeError: If there is no such table.
          ReplayUnavailable: If no server answers.
        """
        updates = {} if updates is None else updates
        try:
            priorities = np.fromiter(updates.values(), np.float64, len(updates))
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"updates: got {updates!r}, expected a number for each key ({error})."
            ) from None
        if len(priorities) and not (
            priorities.min() >= 0 and priorities.max() < np.inf
        ):
            # None has become NaN.
            index = np.flatnonzero(~((priorities >= 0) & (priorities < np.inf)))[0]
            bad = list(updates)[index]
            raise ValueError(
                f"updates: got the priority {updates[bad]} for key {bad}, expected "
                "finite numbers that are at least 0."
            )
        deleted = () if deletes is None else deletes
        arrays = [_keys(updates, "updates"), priorities, _keys(deleted, "deletes")]
        self._control.request(wire.MUTATE, {"table": table}, arrays, timeout=timeout)

    def reset(self, table: str) -> None:
        """Removes all items of a table, and resets its rate limiter.

        Soon after the call, the memory of the items is free for new ones. Within twenty
        seconds, it goes back to the system unless it is needed again.

        Raises:
          RuntimeError: If there is no such table.
          ReplayUnavailable: If no server answers.
        """
        self._control.request(wire.RESET, {"table": table})

    def server_info(
        self, timeout: float | None = None
    ) -> dict[str, table_info.TableInfo]:
        """Returns the `TableInfo` of each table, by name.

        Args:
          timeout: The number of seconds to wait. With None, only the attempts to reach
            the server have a limit: the client's own timeout.

        Raises:
          DeadlineExceededError: If `timeout` seconds pass without an answer.
          ReplayUnavailable: If no server answers and there is no `timeout`.
        """
        try:
            reply = self._control.request(wire.INFO, {}, timeout=timeout)
        except (errors.DeadlineExceededError, errors.ReplayUnavailable) as error:
            if timeout is None:
                raise
            raise errors.DeadlineExceededError(
                "ServerInfo call did not complete within provided timeout of "
                f"{timeout}s"
            ) from error
        infos = map(table_info.TableInfo.from_json, reply["tables"])
        return {info.name: info for info in infos}

    def checkpoint(self) -> str:
        """Makes the server write a checkpoint; returns its path on the server's host.

        The checkpoint has the state of one moment, although the server answers other
        requests meanwhile. The checkpoint before it is kept.

        Raises:
          ResourceExhaustedError: If the disk is full. Earlier checkpoints are kept.
          ReverbError: If the checkpoint could not be written for another reason.
          ReplayUnavailable: If no server answers.
        """
        return str(self._control.request(wire.CHECKPOINT, {})["path"])

    def _connect(
        self,
        role: str,
        timeout: float | None = None,
        hello: Mapping[str, Any] | None = None,
    ) -> connections.Connection:
        access = self._access
        return connections.connect(
            self._server_address,
            role,
            token=access["token"],
            tls=access["tls_root_certificates"],
            timeout=access["timeout"] if timeout is None else timeout,
            hello=hello,
            shared=False,
        )

    def _trajectory_writer(
        self, num_keep_alive_refs: int, **options: Any
    ) -> TrajectoryWriter:
        def connect(hello: dict[str, Any]) -> connections.Connection:
            return self._connect("writer", hello=hello)

        return TrajectoryWriter(connect, num_keep_alive_refs, **options)

    def _structure(self, table: str) -> Any:
        """Returns the structure of the table's signature, or None."""
        tables = self._control.tables()
        if table not in tables:
            raise ValueError(
                f'Could not find table "{table}". The following tables exists: '
                f"{', '.join(tables)}."
            )
        signature = tables[table].get("signature")
        if signature is None:
            return None
        return spec_json.decode(signature, lambda _: None)


def _check_integer(name: str, value: Any, least: int) -> None:
    if not isinstance(value, numbers.Integral):
        raise TypeError(
            f"{name}: got {value!r}, expected an integer; round it, as in n // 2."
        )
    if value < least:
        raise ValueError(f"{name}: got {value}, expected at least {least}; raise it.")


def _make_client(server_address: str, access: dict[str, Any]) -> Client:
    return Client(server_address, **access)


def _keys(keys: Any, name: str) -> np.ndarray:
    try:
        return np.fromiter(map(operator.index, keys), np.uint64, len(keys))
    except OverflowError:
        raise ValueError(
            f"{name}: got a key that is negative or above 2**64 - 1, expected keys "
            "from `SampleInfo.key`."
        ) from None
    except TypeError as error:
        raise TypeError(
            f"{name}: got keys that are not integers ({error}), expected keys from "
            "`SampleInfo.key`."
        ) from None


def _unflatten(structure: Any, flat: list[np.ndarray]) -> Any:
    return flat if structure is None else tree.unflatten_as(structure, flat)
