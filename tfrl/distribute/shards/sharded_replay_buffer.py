"""A replay buffer that samples the tables of several replay servers as one."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl import replay_service
from tfrl.compilation.python_calls import graph_calls
from tfrl.distribute.shards import batch_shares, sharded_client
from tfrl.replay_buffers import (
    replay_buffer,
    reverb_replay_buffer,
    tf_prioritized_replay_buffer,
)
from tfrl.replay_buffers.reverb import reverb_dataset
from tfrl.typing import types
from tfrl.utils import number_checks


class ShardedReplayBuffer(replay_buffer.ReplayBuffer):
    """Samples the items that observers have written to the shards of a `ShardedClient`.

    It replaces a `ReverbReplayBuffer` in a learner's loop: an item of the tables is a
    sequence of frames, `[T, ...]`, and `as_dataset` gives batches of them. Actors write
    with the observers of `reverb_utils`, each to its own shard; see `HomeShard`.

    If it is made with an `importance_exponent`, it is a prioritized buffer: samples
    have keys and importance weights, and loops set the priorities of the items on which
    they have trained. The weights are right for any weighting of the shards, because
    the probability of an item includes its shard's share.

    When a `tf.train.Checkpoint` that holds the buffer is saved, each server writes a
    checkpoint of its tables. Only the servers can restore them.
    """

    def __init__(
        self,
        data_spec: types.NestedTensorSpec,
        client: sharded_client.ShardedClient,
        sequence_length: int | None,
        weighting: batch_shares.Weighting = "size",
        dataset_buffer_size: int | None = None,
        *,
        mixed: bool = True,
        importance_exponent: float | None = None,
        max_weight: float = 10.0,
    ) -> None:
        """Checks the tables.

        Args:
          data_spec: A nest of specs of one frame, without batch and time.
          client: The client of the servers.
          sequence_length: The number of frames of an item (`T`); None if it varies.
          weighting: The rule for each shard's number of items in a batch: "size" for
            uniform tables, "mass" for prioritized tables, "equal" for the same number
            from each shard.
          dataset_buffer_size: The number of items that a dataset may request ahead of
            their use; None takes the default of `ShardedClient.as_dataset`.
          mixed: Whether each batch has items of all shards; see
            `ShardedClient.as_dataset`.
          importance_exponent: Beta, the degree to which the weights correct the bias of
            prioritized sampling; None for a buffer that is not prioritized.
          max_weight: The largest weight of an item; see `TFPrioritizedReplayBuffer`.

        Raises:
          ValueError: If the tables' signature does not fit `data_spec` and
            `sequence_length`, there is no such weighting, or a number is out of range.
        """
        batch_shares.check_weighting(weighting)
        number_checks.check_sizes(
            optional=True,
            sequence_length=sequence_length,
            dataset_buffer_size=dataset_buffer_size,
        )
        number_checks.check_number(
            "importance_exponent",
            importance_exponent,
            0,
            remedy="1 corrects all of the bias",
            optional=True,
        )
        number_checks.check_number(
            "max_weight",
            max_weight,
            0,
            excludes_low=True,
            remedy="a weight of 1 leaves the loss of an item as it is",
        )
        reverb_dataset.check_signature(
            client.signature, data_spec, sequence_length, client.table
        )
        super().__init__(data_spec, client.max_size, stateful_dataset=True)
        self._set_untracked("_client", client)
        self._sequence_length = sequence_length
        self._weighting = weighting
        self._buffer_size = dataset_buffer_size
        self._mixed = mixed
        self._beta = importance_exponent
        self._max_weight = float(max_weight)
        self._ordered_calls = graph_calls.OrderedCalls()
        # Tracked by checkpoints.
        self._contents = reverb_replay_buffer.Contents(client, client.num_items)

    @property
    def client(self) -> sharded_client.ShardedClient:
        """The client of the servers."""
        return self._client

    def table_infos(self) -> list[replay_service.reverb_types.TableInfo]:
        """Returns the information of the servers that answer about their tables."""
        return [info for info in self._client.table_infos() if info is not None]

    @property
    def last_checkpoints(self) -> list[str | None]:
        """The last checkpoint that each server wrote for this object, or None."""
        return self._contents.path or [None] * self._client.num_shards

    @property
    def is_prioritized(self) -> bool:
        """Whether there is an `importance_exponent`."""
        return self._beta is not None

    def variables(self) -> list[tf.Variable]:
        """Returns an empty list: the contents are in the servers."""
        return []

    def check_fits(self, num_steps: int | None) -> None:
        """Raises a ValueError if items do not have `num_steps` frames."""
        if num_steps not in (None, self._sequence_length):
            raise ValueError(
                f"num_steps: got {num_steps}, expected the tables' sequence_length of "
                f"{self._sequence_length}, or None; write sequences of {num_steps}."
            )

    @contextlib.contextmanager
    def reraise(self) -> Iterator[None]:
        """Raises the replay service's own exception; see `ReverbReplayBuffer`."""
        failure = functools.partial(reverb_dataset.take_failure, self._client.label)
        with reverb_dataset.reraised(failure):
            yield

    def update_priorities(self, keys: Any, priorities: Any) -> Any:
        """Sets the priorities of items, eagerly or in a graph; ignores unknown keys.

        Args:
          keys: The items' keys, uint64 `[N]`, which carry their shards.
          priorities: The new priorities, floats `[N]`.
        """

        def update(keys: np.ndarray, priorities: np.ndarray) -> list[Any]:
            self._client.update_priorities(keys, priorities)
            return [True]

        [done] = self._ordered_calls(
            update,
            [keys, tf.cast(priorities, tf.float64)],
            [tf.TensorSpec([], tf.bool)],
        )
        return done

    def _num_frames(self) -> tf.Tensor:
        """Returns the number of items in the living shards, int64."""
        [size] = self._ordered_calls(
            lambda: [self._client.num_items()], [], [tf.TensorSpec([], tf.int64)]
        )
        return size

    def _clear(self) -> None:
        def clear() -> list[Any]:
            self._client.reset()
            return []

        self._ordered_calls(clear, [], [])

    def _as_dataset(
        self,
        sample_batch_size: int | None,
        num_steps: int | None,
        sequence_preprocess_fn: Callable[[Any], Any] | None,
        num_parallel_calls: int | None,
    ) -> tf.data.Dataset:
        """Returns a dataset of `(items, info)`, `[B, T, ...]`.

        The info is a `SampleInfo`, `[B, T]`. For a prioritized buffer it is a
        `PrioritizedBufferInfo`, `[B]`, whose keys are uint64.
        """
        del num_parallel_calls
        self.check_fits(num_steps)
        if sample_batch_size is None or sequence_preprocess_fn is not None:
            raise NotImplementedError(
                "ShardedReplayBuffer.as_dataset: without sample_batch_size, or with "
                "sequence_preprocess_fn; map a dataset of batches instead."
            )
        dataset = self._client.as_dataset(
            sample_batch_size, self._weighting, self._buffer_size, mixed=self._mixed
        )
        return dataset.map(
            self._with_repeated_infos if self._beta is None else self._with_weights
        )

    def _with_repeated_infos(self, sample: Any) -> tuple[Any, Any]:
        info, data = reverb_dataset.repeat_info(sample, axis=1)
        return self._packed(data), info

    def _with_weights(self, sample: Any) -> tuple[Any, Any]:
        info, data = sample
        weights = tf_prioritized_replay_buffer.importance_weights(
            info.probability, info.table_size, self._beta, self._max_weight
        )
        return self._packed(data), tf_prioritized_replay_buffer.PrioritizedBufferInfo(
            (),
            tf.cast(info.probability, tf.float32),
            info.key,
            tf.cast(weights, tf.float32),
        )

    def _packed(self, data: Any) -> Any:
        """Restores the structure of `data_spec`, which a signature may lose."""
        return tf.nest.pack_sequence_as(self._data_spec, tf.nest.flatten(data))
