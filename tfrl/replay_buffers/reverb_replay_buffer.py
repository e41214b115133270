"""A replay buffer that samples a table of a replay server."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
import tree

from tfrl import replay_service
from tfrl.compilation.python_calls import graph_calls
from tfrl.replay_buffers import replay_buffer
from tfrl.replay_buffers.reverb import reverb_dataset, reverb_rollouts
from tfrl.replay_buffers.reverb.reverb_dataset import (
    make_reverb_dataset,
    truncate_reshape_rows_by_num_steps,
)
from tfrl.typing import types
from tfrl.utils import number_checks

_logger = logging.getLogger(__name__)

__all__ = [
    "DEFAULT_TABLE",
    "ReverbReplayBuffer",
    "make_reverb_dataset",
    "truncate_reshape_rows_by_num_steps",
]

DEFAULT_TABLE = "experience"


class ReverbReplayBuffer(replay_buffer.ReplayBuffer):
    """Samples items that observers have written to a table of a replay server.

    An item of the table is a sequence of frames, `[T, ...]`. `as_dataset` gives
    sequences as they were written, or shorter pieces of them; if pieces do not fill a
    sequence, its last frames are dropped. The items are sent ahead of their use, so a
    sample may be older than the last write.

    Frames are written by the observers of `reverb_utils`, which a `PyDriver` calls. To
    write batches, from a TensorFlow driver or a loop of `tfrl.train`, pass
    `make_observer` to the buffer: then `add_batch` passes each row of a batch to an
    observer.

    When a `tf.train.Checkpoint` that holds the buffer is saved, the server writes a
    checkpoint of its tables. Only the server can restore its tables: start it with the
    same `replay_service.checkpointers.DefaultCheckpointer` as before.
    """

    def __init__(
        self,
        data_spec: types.NestedTensorSpec,
        table_name: str,
        sequence_length: int | None,
        server_address: str | None = None,
        local_server: replay_service.Server | None = None,
        dataset_buffer_size: int | None = None,
        max_cycle_length: int = 32,
        num_workers_per_iterator: int = -1,
        max_samples_per_stream: int = -1,
        rate_limiter_timeout_ms: int = -1,
        *,
        make_observer: Callable[[replay_service.Client], Any] | None = None,
        batch_size: int = 1,
        token: str | None = None,
        tls_root_certificates: bytes | None = None,
    ) -> None:
        """Connects to the server.

        Args:
          data_spec: A nest of specs of one frame, without batch and time.
          table_name: The table to sample from.
          sequence_length: The number of frames of every item (`T`); None if the number
            varies.
          server_address: The server's address, as "host:port".
          local_server: The server, if this process has started it. Either
            `local_server` or `server_address` must be given.
          dataset_buffer_size: The number of items that a dataset may request ahead of
            their use; None takes three times the batch size.
          max_cycle_length: Has no effect. TF-Agents has it for the number of streams of
            a dataset; here one stream delivers whole batches.
          num_workers_per_iterator: A factor for the number of items requested ahead; -1
            means 1. The items come in the order of the table's sampler in any case.
          max_samples_per_stream: The largest number of items in one request; -1 for no
            limit.
          rate_limiter_timeout_ms: The number of milliseconds to wait for the table's
            rate limiter before a dataset ends; -1 waits without limit.
          make_observer: A function that makes an observer from the client, such as a
            `ReverbAddTrajectoryObserver`, for `add_batch`. If None, `add_batch` raises
            NotImplementedError.
          batch_size: The number of rows of the batches for `add_batch`; each row has
            its own observer.
          token: The token, if the server requires one; by default the environment
            variable TFRL_REPLAY_TOKEN.
          tls_root_certificates: The root certificates that verify a server with TLS.

        Raises:
          ValueError: If not exactly one of `server_address` and `local_server` is
            given, a number is not positive, the server has no such table, or the
            table's signature does not fit `data_spec` and `sequence_length`.
          replay_service.ReplayUnavailable: If no server answers.
        """
        if (server_address is None) == (local_server is None):
            raise ValueError(
                "server_address, local_server: got "
                f"{'neither' if server_address is None else 'both'}, exactly one of "
                "the server_address or local_server must be provided."
            )
        number_checks.check_sizes(
            max_cycle_length=max_cycle_length, batch_size=batch_size
        )
        number_checks.check_sizes(
            optional=True,
            sequence_length=sequence_length,
            dataset_buffer_size=dataset_buffer_size,
        )
        if local_server is not None:
            server_address = f"localhost:{local_server.port}"
        self._server_address = str(server_address)
        self._local_server = local_server
        self._table_name = table_name
        self._sequence_length = sequence_length
        self._buffer_size = dataset_buffer_size
        self._rate_limiter_timeout_ms = rate_limiter_timeout_ms
        self._num_workers = num_workers_per_iterator
        self._max_samples_per_stream = max_samples_per_stream
        self._batch_size = batch_size
        access: dict[str, Any] = {
            "token": token,
            "tls_root_certificates": tls_root_certificates,
        }
        self._set_untracked("_access", access)
        self._set_untracked("_datasets", {})
        self._py_client = replay_service.Client(self._server_address, **access)
        self._tf_client = replay_service.TFClient(
            self._server_address, "rb_tf_client", **access
        )
        info = self.get_table_info()
        reverb_dataset.check_signature(
            info.signature, data_spec, sequence_length, table_name
        )
        super().__init__(data_spec, info.max_size, stateful_dataset=True)
        self._ordered_calls = graph_calls.OrderedCalls()
        self._set_untracked("_failure", None)
        self._rows = None
        if make_observer is not None:
            self._rows = reverb_rollouts.Rows(
                make_observer, self._py_client, data_spec, batch_size
            )
        # Tracked by checkpoints.
        self._contents = Contents(self._py_client, self.num_frames)

    @property
    def py_client(self) -> replay_service.Client:
        """The client of the server."""
        return self._py_client

    @property
    def tf_client(self) -> replay_service.TFClient:
        """A client of the server whose methods work inside a graph."""
        return self._tf_client

    @property
    def local_server(self) -> replay_service.Server | None:
        """The server that was passed as `local_server`, or None."""
        return self._local_server

    @property
    def last_checkpoints(self) -> list[str | None]:
        """The last checkpoint that the server wrote for this object, or None."""
        return [self._contents.path]

    @property
    def works_in_graph(self) -> bool:
        """Whether a `tf.function` may trace `add_batch`: always."""
        return True

    @property
    def batch_size(self) -> int:
        """The number of rows in the batches of `add_batch`."""
        return self._batch_size

    def table_infos(self) -> list[replay_service.reverb_types.TableInfo]:
        """Returns the result of `get_table_info`, like a buffer of several servers."""
        return [self.get_table_info()]

    def get_table_info(self) -> replay_service.reverb_types.TableInfo:
        """Returns the server's current information about the table.

        Raises:
          ValueError: If the server has no such table.
        """
        infos = self._py_client.server_info()
        if self._table_name not in infos:
            raise ValueError(
                f"table_name: got {self._table_name!r}, but the server at "
                f"{self._server_address} has {sorted(infos)}; give one of them."
            )
        return infos[self._table_name]

    def update_priorities(self, keys: Any, priorities: Any) -> Any:
        """Sets the priorities of items, eagerly or in a graph; ignores unknown keys.

        Args:
          keys: The items' keys, uint64 `[N]`: `info.key[:, 0]` for batches `[B, T]`.
          priorities: The new priorities, float64 `[N]`.
        """
        return self._tf_client.update_priorities(self._table_name, keys, priorities)

    def variables(self) -> list[tf.Variable]:
        """Returns an empty list: the contents are in the server."""
        return []

    def check_fits(self, num_steps: int | None) -> None:
        """Raises a ValueError if items cannot be cut into pieces of `num_steps`."""
        self._steps_to_cut(num_steps)

    @contextlib.contextmanager
    def reraise(self) -> Iterator[None]:
        """Raises the replay service's own exception instead of a `tf.errors.OpError`.

        ```
        with replay_buffer.reraise():
            train_loop()  # a tf.function that writes to the buffer or samples it
        ```
        """
        with reverb_dataset.reraised(self._take_failure):
            yield

    def flush(self) -> None:
        """Waits until the server has all items that `add_batch` has made so far."""
        if self._rows is not None:
            self._rows.flush()

    def _num_frames(self) -> Any:
        """Returns the number of items in the table: an int, or in a graph a tensor."""
        if tf.executing_eagerly():
            return self.get_table_info().current_size
        [size] = self._call_python(
            lambda: [self.get_table_info().current_size],
            [],
            [tf.TensorSpec([], tf.int64)],
        )
        return size

    def _add_batch(self, items: Any) -> tf.Tensor:
        """Adds a batch; returns the number of earlier batches since `clear`, int64."""
        if self._rows is None:
            raise NotImplementedError(
                "ReverbReplayBuffer.add_batch: was made without make_observer; pass "
                "one, or write with the observers of reverb_utils."
            )
        [number] = self._call_python(
            self._rows.add,
            tf.nest.flatten(self._rows.check(items)),
            [tf.TensorSpec([], tf.int64)],
        )
        return number

    def _call_python(
        self,
        function: Callable[..., Sequence[Any]],
        inputs: Sequence[Any],
        output_specs: Sequence[tf.TensorSpec],
    ) -> list[tf.Tensor]:
        """Calls a function in the order of the program; see `OrderedCalls`."""

        def call(*arrays: np.ndarray) -> Sequence[Any]:
            try:
                return function(*arrays)
            except replay_service.ReverbError as error:
                self._set_untracked("_failure", error)
                raise

        return self._ordered_calls(call, inputs, output_specs)

    def _take_failure(self) -> Exception | None:
        """Returns and forgets the last exception of the service in a graph."""
        failure = self._failure
        self._set_untracked("_failure", None)
        return reverb_dataset.take_failure(self._server_address) or failure

    def _get_next(
        self, sample_batch_size: int | None, num_steps: int | None, time_stacked: bool
    ) -> Any:
        raise NotImplementedError(
            "ReverbReplayBuffer.get_next: items come in streams; iterate over "
            "as_dataset, or draw single ones with py_client.sample."
        )

    def _clear(self) -> None:
        def clear() -> list[Any]:
            # Writers that wait for the rate limiter can continue once the table is
            # empty.
            self._py_client.reset(self._table_name)
            if self._rows is not None:
                self._rows.reset()
                self._py_client.reset(self._table_name)
            return []

        self._call_python(clear, [], [])

    def _gather_all(self) -> Any:
        """Removes and returns all items of a table that is a queue.

        Returns `[N, T, ...]` in the order of the table's sampler; items shorter than
        the longest one are padded with zeros at the end.
        """
        specs = [
            tf.TensorSpec([None, self._sequence_length, *s.shape], s.dtype)
            for s in tf.nest.flatten(self._data_spec)
        ]
        leaves = self._call_python(self._take_all, [], specs)
        return tf.nest.pack_sequence_as(self._data_spec, leaves)

    def _take_all(self) -> list[np.ndarray]:
        self.flush()
        info = self.get_table_info()
        if not info.sampler_options.is_deterministic or info.max_times_sampled != 1:
            raise NotImplementedError(
                f"ReverbReplayBuffer.gather_all: table {self._table_name!r} gives its "
                "items at random or more than once, expected a queue; make it with "
                "replay_service.Table.queue, or sample it with as_dataset."
            )
        if not info.current_size:
            raise ValueError(
                f"ReverbReplayBuffer.gather_all: table {self._table_name!r} is empty; "
                "write something first."
            )
        samples = self._py_client.sample(
            self._table_name, num_samples=info.current_size, emit_timesteps=False
        )
        columns = zip(*[tree.flatten(sample.data) for sample in samples], strict=True)
        return [reverb_rollouts.stack_padded(column) for column in columns]

    def _as_dataset(
        self,
        sample_batch_size: int | None,
        num_steps: int | None,
        sequence_preprocess_fn: Callable[[Any], Any] | None,
        num_parallel_calls: int | None,
    ) -> tf.data.Dataset:
        arguments = (
            sample_batch_size,
            num_steps,
            sequence_preprocess_fn,
            num_parallel_calls,
        )
        if sequence_preprocess_fn is not None or not tf.executing_eagerly():
            return self._make_dataset(*arguments)
        # Tutorials make a dataset in every iteration, and each dataset has to be
        # traced.
        if arguments not in self._datasets:
            self._datasets[arguments] = self._make_dataset(*arguments)
        return self._datasets[arguments]

    def _make_dataset(
        self,
        sample_batch_size: int | None,
        num_steps: int | None,
        sequence_preprocess_fn: Callable[[Any], Any] | None,
        num_parallel_calls: int | None,
    ) -> tf.data.Dataset:
        steps = self._steps_to_cut(num_steps)
        batch_size = sample_batch_size or 1
        if (num_parallel_calls or 1) > batch_size and sample_batch_size is not None:
            raise ValueError(
                f"num_parallel_calls: got {num_parallel_calls}, which cannot be bigger "
                f"than sample_batch_size {sample_batch_size}; make it smaller."
            )
        sequences = self._sequences(
            max_in_flight_samples_per_worker=self._buffer_size or 3 * batch_size,
            num_workers_per_iterator=self._num_workers,
        )
        is_plain = sequence_preprocess_fn is None
        if is_plain and steps is None:
            return reverb_dataset.batches(sequences, sample_batch_size)
        if is_plain and steps is not None and self._sequence_length is not None:
            # The last pool may have fewer sequences, but it still gives batches of
            # pieces.
            pools = reverb_dataset.batches(sequences, batch_size, drop_remainder=False)
            return reverb_dataset.mixed_pieces(pools, steps, sample_batch_size)
        pieces = reverb_dataset.preprocessed(
            sequences, sequence_preprocess_fn, num_parallel_calls
        )
        if steps is not None:
            # This is large enough that the pieces of a batch come from about as many
            # sequences.
            of_one = (self._sequence_length or 100 * steps) // steps
            pieces = reverb_dataset.pieces_in_order(pieces, steps)
            pieces = pieces.shuffle(of_one * batch_size)
        return reverb_dataset.in_batches(pieces, sample_batch_size)

    def _single_deterministic_pass_dataset(
        self,
        sample_batch_size: int | None,
        num_steps: int | None,
        sequence_preprocess_fn: Callable[[Any], Any] | None,
        num_parallel_calls: int | None,
    ) -> tf.data.Dataset:
        del num_parallel_calls
        info = self.get_table_info()
        for selector in (info.sampler_options, info.remover_options):
            if not selector.is_deterministic:
                raise ValueError(
                    "single_deterministic_pass: unable to go through table "
                    f"{self._table_name!r} once, since either the sampler or the "
                    "remover is not deterministic (Fifo, Lifo or a heap). It is\n"
                    f"{info}"
                )
        steps = self._steps_to_cut(num_steps)
        sequences = self._sequences(
            max_in_flight_samples_per_worker=1, num_workers_per_iterator=1
        )
        pieces = reverb_dataset.preprocessed(sequences, sequence_preprocess_fn, None)
        if steps is not None:
            pieces = reverb_dataset.pieces_in_order(pieces, steps)
        return reverb_dataset.in_batches(pieces, sample_batch_size)

    def _sequences(self, **options: int) -> tf.data.Dataset:
        return reverb_dataset.whole_sequences(
            self._server_address,
            self._table_name,
            self._data_spec,
            self._sequence_length,
            max_samples_per_stream=self._max_samples_per_stream,
            rate_limiter_timeout_ms=self._rate_limiter_timeout_ms,
            **self._access,
            **options,
        )

    def _steps_to_cut(self, num_steps: int | None) -> int | None:
        """Returns the number of frames in a piece of a sequence; None for no pieces."""
        length = self._sequence_length
        if num_steps is None or length is None or num_steps == length:
            return None if num_steps == length else num_steps
        if num_steps > length:
            raise ValueError(
                "num_steps: sequences of the table are shorter, num_steps > "
                f"sequence_length ({num_steps} vs. {length}); ask for fewer, or write "
                "longer sequences."
            )
        if length % num_steps:
            raise ValueError(
                "num_steps: pieces would not fill the sequences of the table, since "
                f"sequence_length is not a multiple of num_steps ({length} vs. "
                f"{num_steps}); ask for a divisor."
            )
        return num_steps


class CheckpointedClient(Protocol):
    """The part of a client that `Contents` uses."""

    def checkpoint(self) -> Any:
        """Makes the server write a checkpoint; returns its path."""


class Contents(tf.train.experimental.PythonState):
    """Saves a Reverb server's items with each `tf.train.Checkpoint`.

    Whenever a `tf.train.Checkpoint` is saved, the server writes its own checkpoint, and
    the `tf.train.Checkpoint` holds the path of the server's checkpoint.

    Attributes:
      path: The path of the last checkpoint, as the client has returned it; None before
        the first.
    """

    def __init__(
        self, client: CheckpointedClient, num_items: Callable[[], int]
    ) -> None:
        """Stores the client and the function that counts items.

        Args:
          client: The client of the server.
          num_items: Returns the number of items in the table.
        """
        self._client = client
        self._num_items = num_items
        self.path: Any = None

    def serialize(self) -> str:
        """Makes the server write a checkpoint; returns its path and number of items."""
        # Items on their way to the server are left out. Waiting for them could take
        # forever: the rate limiter may block them, since nobody samples now.
        self.path = self._client.checkpoint()
        return json.dumps({"path": str(self.path), "items": self._num_items()})

    def deserialize(self, string_value: bytes) -> None:
        """Logs a warning if the table is empty, but was not when it was saved."""
        saved = json.loads(string_value)
        if saved["items"] and not self._num_items():
            _logger.warning(
                "The replay server's table is empty, but when this checkpoint was made "
                "it held %d items, which are in %s. A server loads them when it is "
                "started with the DefaultCheckpointer of the folder above.",
                saved["items"],
                saved["path"],
            )
