"""A ring of frames in NumPy arrays, sampled uniformly."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from tfrl.replay_buffers import replay_buffer
from tfrl.utils import numpy_storage, seeds


class PyUniformReplayBuffer(replay_buffer.ReplayBuffer):
    """Stores frames one at a time; samples frames or windows of successive ones.

    Samples are items alone, without a `BufferInfo`. Writing and reading is thread-safe.
    `tf.train.Checkpoint` saves contents, head and the state of the random numbers.
    """

    def __init__(
        self, data_spec: Any, capacity: int, *, seed: int | None = None
    ) -> None:
        """Creates the storage.

        Args:
          data_spec: A nest of `ArraySpec`s of one frame.
          capacity: How many frames are kept.
          seed: Of the sampling; None follows `tf.random.set_seed`.

        Raises:
          ValueError: If `capacity` is not positive, or a leaf is no `ArraySpec`.
        """
        replay_buffer.check_count("capacity", capacity, optional=False)
        super().__init__(data_spec, int(capacity))
        self._storage = numpy_storage.NumpyStorage(data_spec, self._capacity)
        self._state = numpy_storage.NumpyState()
        self._state.size = np.int64(0)
        self._state.cur_id = np.int64(0)
        self._state.item_count = np.int64(0)
        entropy = seeds.next_seed(seeds.make_generator(seed)).numpy()
        self._random = _RandomState(np.abs(entropy))
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """How many frames the buffer holds now."""
        return int(self._state.size)

    def _num_frames(self) -> int:
        return self.size

    def _add_batch(self, items: Any) -> None:
        try:
            tree.assert_same_structure(items, self._data_spec)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "items: got another structure than the buffer's data_spec; pass items "
                f"nested as data_spec is. {error}"
            ) from error
        for (path, spec), item in zip(
            tree.flatten_with_path(self._data_spec), tree.flatten(items), strict=True
        ):
            _check_leaf("/".join(map(str, path)), spec, np.asarray(item))
        with self._lock:
            self._storage.set(
                int(self._state.cur_id), tree.map_structure(lambda x: x[0], items)
            )
            self._state.size = np.minimum(self._state.size + 1, self._capacity)
            self._state.cur_id = (self._state.cur_id + 1) % self._capacity
            self._state.item_count = self._state.item_count + 1

    def _get_next(
        self, sample_batch_size: int | None, num_steps: int | None, time_stacked: bool
    ) -> Any:
        self._check_fits(num_steps)
        shape = () if sample_batch_size is None else (sample_batch_size,)
        with self._lock:
            starts = self._random.generator.integers(
                self._valid_starts(num_steps or 1), size=shape
            )
            if num_steps is not None:
                starts = starts[..., None] + np.arange(num_steps)
            items = self._storage.get(self._rows(starts))
        if num_steps is None or time_stacked:
            return items
        axis = len(shape)
        return tuple(
            tree.map_structure(lambda x, t=t: np.take(x, t, axis), items)
            for t in range(num_steps)
        )

    def _as_dataset(
        self,
        sample_batch_size: int | None,
        num_steps: int | None,
        sequence_preprocess_fn: Callable[[Any], Any] | None,
        num_parallel_calls: int | None,
    ) -> tf.data.Dataset:
        if num_parallel_calls is not None:
            raise NotImplementedError(
                f"num_parallel_calls: got {num_parallel_calls}; PyUniformReplayBuffer "
                "draws one element at a time. Pass None."
            )
        self._check_fits(num_steps)
        outer = [n for n in (sample_batch_size, num_steps) if n is not None]
        signature = tuple(
            tf.TensorSpec([*outer, *spec.shape], spec.dtype)
            for spec in tree.flatten(self._data_spec)
        )

        def elements() -> Iterator[tuple[Any, ...]]:
            while True:
                items = self._get_next(sample_batch_size, num_steps, True)
                yield tuple(tree.flatten(items))

        def pack(*leaves: tf.Tensor) -> Any:
            items = tf.nest.pack_sequence_as(self._data_spec, leaves)
            if sequence_preprocess_fn is not None:
                items = sequence_preprocess_fn(items)
            return items

        return tf.data.Dataset.from_generator(elements, output_signature=signature).map(
            pack
        )

    def _gather_all(self) -> Any:
        with self._lock:
            items = self._storage.get(self._rows(np.arange(self.size)))
        return tree.map_structure(lambda x: x[None], items)

    def _clear(self) -> None:
        with self._lock:
            self._state.size = np.int64(0)
            self._state.cur_id = np.int64(0)

    def _rows(self, frames: np.ndarray) -> np.ndarray:
        """Returns the rows of frames that are numbered from the oldest one on."""
        oldest = self._state.cur_id if self.size == self._capacity else 0
        return (oldest + frames) % self._capacity

    def _check_fits(self, num_steps: int | None) -> None:
        if num_steps is not None and num_steps > self._capacity:
            raise ValueError(
                f"num_steps: got {num_steps}, but the buffer keeps only capacity="
                f"{self._capacity} frames, so no window can be sampled. Make it with "
                f"capacity >= {num_steps}."
            )

    def _valid_starts(self, num_steps: int) -> int:
        needed = f"num_steps={num_steps} needs {num_steps} frames"
        if self.size == 0:
            raise ValueError(
                f"PyUniformReplayBuffer is empty: {needed}. Add items before sampling "
                "the buffer."
            )
        if self.size < num_steps:
            raise ValueError(
                f"PyUniformReplayBuffer is too short: {needed}, and it holds "
                f"{self.size} so far. Add more items before sampling the buffer."
            )
        return self.size - num_steps + 1


class _RandomState(tf.train.experimental.PythonState):
    """A NumPy generator whose state is saved in checkpoints."""

    def __init__(self, entropy: Any) -> None:
        self.generator = np.random.default_rng(entropy)

    def serialize(self) -> str:
        return json.dumps(self.generator.bit_generator.state)

    def deserialize(self, string_value: str | bytes) -> None:
        self.generator.bit_generator.state = json.loads(string_value)


def _check_leaf(path: str, spec: Any, item: np.ndarray) -> None:
    if item.ndim > 0 and item.shape[1:] == spec.shape and item.shape[0] != 1:
        raise NotImplementedError(
            f"items at '{path}': got a batch of {item.shape[0]}; PyUniformReplayBuffer "
            "stores one environment, a batch of 1. Add the items one by one."
        )
    if item.shape != (1, *spec.shape):
        raise ValueError(
            f"items at '{path}': got shape {item.shape}, expected {(1, *spec.shape)}: "
            "a batch of 1, then the shape in data_spec. Reshape the items."
        )
    if item.dtype != spec.dtype:
        raise ValueError(
            f"items at '{path}': got dtype {item.dtype}, expected {spec.dtype}. Cast "
            "the items or change data_spec."
        )
