"""A client whose methods are TensorFlow operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from tfrl.compilation.python_calls import graph_calls
from tfrl.replay_service import client_pools, signatures
from tfrl.replay_service.client import Client
from tfrl.replay_service.replay_sample import ReplaySample, SampleInfo
from tfrl.specs import spec_json


class TFClient:
    """Samples, inserts and updates priorities, eagerly or in a `tf.function`.

    The operations call a client in Python, and block the operations that depend on
    their results: use datasets to sample many items. The operations raise
    `tf.errors.InvalidArgumentError` for values that the server refuses, and
    `tf.errors.NotFoundError` for an unknown table (`InvalidArgumentError` in graphs).
    """

    def __init__(
        self,
        server_address: str,
        shared_name: str | None = None,
        name: str = "reverb",
        *,
        token: str | None = None,
        tls_root_certificates: bytes | None = None,
        timeout: float = 30.0,
    ):
        """Creates a client, which connects when it is first used.

        Args:
          server_address: "host:port".
          shared_name: Has no effect.
          name: The prefix of the names of operations.
          token: See `Client`.
          tls_root_certificates: See `Client`.
          timeout: See `Client`.

        Raises:
          ValueError: If the address has no port.
        """
        del shared_name
        self._server_address = server_address
        self._name = name
        access: dict[str, Any] = {
            "token": token,
            "tls_root_certificates": tls_root_certificates,
            "timeout": timeout,
        }
        self._client = Client(server_address, **access)
        self._samples = client_pools.ClientSamples(server_address, access)
        with tf.init_scope(), tf.device("CPU:0"):
            # Orders the operations of a graph.
            self._order = tf.Variable(0, dtype=tf.int64, trainable=False)

    @property
    def server_address(self) -> str:
        """The address of the server, "host:port"."""
        return self._server_address

    def sample(
        self, table: Any, data_dtypes: Any, name: str | None = None
    ) -> ReplaySample:
        """Draws an item and returns its first time step.

        Args:
          table: The name of the table, a string or a string tensor.
          data_dtypes: A nest of the data's dtypes.
          name: The name of the operation.

        Returns:
          A sample with scalars in `info`, and data in the structure of `data_dtypes`.
        """
        dtypes = [tf.as_dtype(dtype) for dtype in tree.flatten(data_dtypes)]
        with tf.name_scope(name or f"{self._name}_sample"):
            values = self._call(
                lambda table: self._sample(table, dtypes),
                [tf.convert_to_tensor(table, tf.string)],
                [*SampleInfo.tf_dtypes(), *dtypes],
            )
        fields = len(SampleInfo._fields)
        info = [tf.ensure_shape(value, []) for value in values[:fields]]
        return ReplaySample(
            SampleInfo(*info), tree.unflatten_as(data_dtypes, list(values[fields:]))
        )

    def insert(
        self,
        data: Sequence[Any],
        tables: Any,
        priorities: Any,
        name: str | None = None,
    ) -> Any:
        """Inserts an item that consists of one step into several tables.

        Args:
          data: The tensors of the step.
          tables: String `[n]`, the names of the tables.
          priorities: float64 `[n]`, the priority of the item in each table.
          name: The name of the operation.

        Returns:
          The operation when called in a graph; None when called eagerly.

        Raises:
          ValueError: If `tables` or `priorities` have a wrong dtype or shape.
        """
        if tables.dtype != tf.string or tables.shape.rank != 1:
            raise ValueError(
                f"tables must be a string tensor of rank 1, got {tables.dtype.name} "
                f"{tables.shape}."
            )
        if priorities.dtype != tf.float64 or priorities.shape.rank != 1:
            raise ValueError(
                "priorities must be a float64 tensor of rank 1, got "
                f"{priorities.dtype.name} {priorities.shape}."
            )
        if not tables.shape.is_compatible_with(priorities.shape):
            raise ValueError(
                "priorities and tables must have the same shape, got "
                f"{priorities.shape} and {tables.shape}."
            )
        with tf.name_scope(name or f"{self._name}_insert"):
            return self._call(self._insert, [tables, priorities, *data], [])

    def update_priorities(
        self, table: Any, keys: Any, priorities: Any, name: str | None = None
    ) -> Any:
        """Updates the priorities of items. Ignores unknown keys.

        Args:
          table: The name of the table, a string or a string tensor.
          keys: uint64 `[n]`, the keys of the items.
          priorities: float64 `[n]`, the new priorities.
          name: The name of the operation.

        Returns:
          The operation when called in a graph; None when called eagerly.

        Raises:
          ValueError: If `keys` or `priorities` have a wrong dtype.
        """
        arguments = [
            tf.convert_to_tensor(table, tf.string),
            tf.convert_to_tensor(keys, tf.uint64),
            tf.convert_to_tensor(priorities, tf.float64),
        ]
        with tf.name_scope(name or f"{self._name}_update_priorities"):
            return self._call(self._update, arguments, [])

    def _sample(self, table: bytes, dtypes: Sequence[Any]) -> list[np.ndarray]:
        name = table.decode()
        # Taking the whole item leaves the session idle, for reuse.
        most = np.iinfo(np.int64).max
        with self._samples.stream(name, 1, timesteps=True) as stream:
            rows = stream.next_rows(most)
        signature = stream.signature
        assert rows is not None
        data = rows[len(SampleInfo._fields) :]
        columns = [(array.dtype, array.shape[1:]) for array in data]
        if signature is not None:
            signatures.check_rows(name, signature, columns)
        expected = [
            spec_json.Leaf(None, np.dtype(dtype.as_numpy_dtype).name, "?")
            for dtype in dtypes
        ]
        signatures.check_rows(name, expected, columns)
        return [array[0, ...] for array in rows]

    def _insert(
        self, tables: np.ndarray, priorities: np.ndarray, *data: np.ndarray
    ) -> None:
        items = [
            (t.decode(), p) for t, p in zip(tables, priorities.tolist(), strict=True)
        ]
        client = self._client
        if len(dict(items)) == len(items):
            client.insert(list(data), dict(items))
            return
        for item in items:
            client.insert(list(data), dict([item]))

    def _update(self, table: bytes, keys: np.ndarray, priorities: np.ndarray) -> None:
        if keys.shape != priorities.shape:
            raise ValueError(
                "Tensors `keys` and `priorities` do not match in shape "
                f"({list(keys.shape)} vs. {list(priorities.shape)})"
            )
        updates = dict(zip(keys.tolist(), priorities.tolist(), strict=True))
        self._client.mutate_priorities(table.decode(), updates=updates)

    def _call(
        self, function: Callable[..., Any], arguments: list[Any], dtypes: list[Any]
    ) -> Any:
        """Calls a function of arrays eagerly, or adds its call to the graph."""
        if not tf.executing_eagerly():
            # A call without results returns its operation, which needs one.
            specs = [tf.TensorSpec(None, dtype) for dtype in dtypes or [tf.int64]]
            known = _with_known_errors(function)
            results = graph_calls.call_in_order(
                self._order, lambda *arrays: known(*arrays) or [0], arguments, specs
            )
            return results if dtypes else results[0].op
        try:
            values = function(*[argument.numpy() for argument in arguments])
        except ValueError as error:
            raise tf.errors.InvalidArgumentError(None, None, str(error)) from error
        except RuntimeError as error:
            raise tf.errors.NotFoundError(None, None, str(error)) from error
        if values is None:
            return None
        return [tf.constant(v, dtype) for v, dtype in zip(values, dtypes, strict=True)]


def _with_known_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function raise ValueError, which TensorFlow knows, for RuntimeError."""

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except RuntimeError as error:
            raise ValueError(str(error)) from None

    return call
