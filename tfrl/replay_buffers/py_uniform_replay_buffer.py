"""A ring buffer of frames in NumPy arrays, sampled uniformly."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from tfrl.replay_buffers import replay_buffer
from tfrl.specs import matching
from tfrl.typing import types
from tfrl.utils import number_checks, numpy_storage
from tfrl.utils.random_numbers import seeds


class PyUniformReplayBuffer(replay_buffer.ReplayBuffer):
    """Stores frames one at a time; samples frames, or windows of successive frames.

    Samples consist of items, without a `BufferInfo`. Writing and reading is
    thread-safe. `tf.train.Checkpoint` saves the frames, the position of the next write
    and the state of the random generator.

    A subclass that stores frames in another form overrides `_encoded_data_spec`,
    `_encode`, `_decode` and `_on_delete`.
    """

    def __init__(
        self,
        data_spec: types.NestedArraySpec,
        capacity: int,
        *,
        seed: int | None = None,
    ) -> None:
        """Creates the storage.

        Args:
          data_spec: A nest of `ArraySpec`s of one frame.
          capacity: The number of frames to keep.
          seed: The seed of the sampling; None follows `tf.random.set_seed`.

        Raises:
          ValueError: If `capacity` is not positive, or a leaf is not an `ArraySpec`.
        """
        number_checks.check_sizes(capacity=capacity)
        super().__init__(data_spec, int(capacity))
        self._storage = numpy_storage.NumpyStorage(
            self._encoded_data_spec(), self._capacity
        )
        self._state = numpy_storage.NumpyState()
        self._state.size = np.int64(0)
        self._state.cur_id = np.int64(0)
        self._state.item_count = np.int64(0)
        entropy = seeds.next_seed(seeds.make_generator(seed)).numpy()
        self._random = _RandomState(np.abs(entropy))
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The number of frames in the buffer."""
        return int(self._state.size)

    def _encoded_data_spec(self) -> Any:
        """Returns the nest of `ArraySpec`s of a frame's stored form."""
        return self._data_spec

    def _encode(self, item: Any) -> Any:
        """Returns the stored form of a frame."""
        return item

    def _decode(self, items: Any) -> Any:
        """Returns the original form of stored frames, with any outer dimensions."""
        return items

    def _on_delete(self, encoded_item: Any) -> None:
        """Called before a stored frame is overwritten."""

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
        frame = [
            _checked_leaf(matching.join("items", *path), spec, np.asarray(item))
            for (path, spec), item in zip(
                tree.flatten_with_path(self._data_spec),
                tree.flatten(items),
                strict=True,
            )
        ]
        with self._lock:
            row = int(self._state.cur_id)
            if self.size == self._capacity:
                self._on_delete(self._storage.get(row))
            item = tree.unflatten_as(self._data_spec, frame)
            self._storage.set(row, self._encode(item))
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
            items = self._read(starts)
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
        self._check_fits(num_steps)

        def elements() -> Iterator[Any]:
            while True:
                yield self._get_next(sample_batch_size, num_steps, True)

        outer = [n for n in (sample_batch_size, num_steps) if n is not None]
        return self._dataset(
            elements, outer, sequence_preprocess_fn, num_parallel_calls
        )

    def _single_deterministic_pass_dataset(
        self,
        sample_batch_size: int | None,
        num_steps: int | None,
        sequence_preprocess_fn: Callable[[Any], Any] | None,
        num_parallel_calls: int | None,
    ) -> tf.data.Dataset:
        """Iterates over windows that do not overlap, the oldest first.

        The last window may be shorter, unless windows are batched; then the last batch
        may be smaller.
        """
        steps = num_steps or 1
        batched, group = sample_batch_size is not None, sample_batch_size or 1
        if batched:
            self._check_fits(num_steps)

        def elements() -> Iterator[Any]:
            # Windows that do not overlap: each starts where the one before ends.
            starts = np.arange(0, self._valid_starts(steps if batched else 1), steps)
            for i in range(0, len(starts), group):
                frames = starts[i : i + group]
                if num_steps is not None:
                    end = steps if batched else min(steps, self.size - starts[i])
                    frames = frames[:, None] + np.arange(end)
                if not batched:
                    frames = frames[0]
                with self._lock:
                    items = self._read(frames)
                yield items

        outer: list[int | None] = [None] if batched else []
        if num_steps is not None:
            outer.append(steps if batched else None)
        return self._dataset(
            elements, outer, sequence_preprocess_fn, num_parallel_calls
        )

    def _dataset(
        self,
        elements: Callable[[], Iterator[Any]],
        outer: Sequence[int | None],
        preprocess: Callable[[Any], Any] | None,
        num_parallel_calls: int | None,
    ) -> tf.data.Dataset:
        """Returns a dataset of `elements`, each leaf `[*outer, *spec shape]`."""
        if num_parallel_calls is not None:
            raise NotImplementedError(
                f"num_parallel_calls: got {num_parallel_calls}; "
                f"{type(self).__name__} makes one element at a time. Pass None."
            )
        signature = tuple(
            tf.TensorSpec([*outer, *spec.shape], spec.dtype)
            for spec in tree.flatten(self._data_spec)
        )

        def pack(*leaves: tf.Tensor) -> Any:
            items = tf.nest.pack_sequence_as(self._data_spec, leaves)
            return items if preprocess is None else preprocess(items)

        return tf.data.Dataset.from_generator(
            lambda: (tuple(tree.flatten(items)) for items in elements()),
            output_signature=signature,
        ).map(pack)

    def _gather_all(self) -> Any:
        with self._lock:
            items = self._read(np.arange(self.size))
        return tree.map_structure(lambda x: x[None], items)

    def _clear(self) -> None:
        with self._lock:
            self._state.size = np.int64(0)
            self._state.cur_id = np.int64(0)

    def _read(self, frames: Any) -> Any:
        """Returns the frames with numbers `[...]`, counted from the oldest frame."""
        oldest = self._state.cur_id if self.size == self._capacity else 0
        return self._decode(self._storage.get((oldest + frames) % self._capacity))

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
                f"{type(self).__name__} is empty: {needed}. Add items before sampling "
                "the buffer."
            )
        if self.size < num_steps:
            raise ValueError(
                f"{type(self).__name__} is too short: {needed}, and it holds "
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


def _checked_leaf(where: str, spec: Any, item: np.ndarray) -> np.ndarray:
    """Returns the frame in a batch of one, cast to the dtype of `spec`."""
    if item.ndim > 0 and item.shape[1:] == spec.shape and item.shape[0] != 1:
        raise NotImplementedError(
            f"{where}: got a batch of {item.shape[0]}; PyUniformReplayBuffer stores "
            "one environment, a batch of 1. Add the items one by one."
        )
    item = matching.cast(item, spec)
    remedy = "cast the items, or give a batch of one item like data_spec"
    matching.check(where, item, spec, (1,), remedy=remedy)
    return item[0]
