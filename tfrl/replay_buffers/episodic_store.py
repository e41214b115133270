"""The variables of an episodic buffer, the order of their changes, and reads of them.

Episodes are numbered as they begin, and episode `i` lies in row `i % capacity`, so a
new episode replaces the oldest one. Each row has its frames, a length and a mark of
completion. A row's episode number is removed before the row is cleared, and frames are
written before the length that makes them visible. So if a sampler gets a row's frames
and then finds the row's episode number unchanged, all the frames are of that episode.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.compilation import trace_counts
from tfrl.replay_buffers import episodic_table, replay_buffer
from tfrl.typing import types
from tfrl.utils import mixins
from tfrl.utils.random_numbers import seeds

BufferInfo = replay_buffer.BufferInfo

NO_EPISODE = -1


class EpisodicStore(tf.Module):
    """Holds `capacity` episodes of any length."""

    def __init__(self, data_spec: types.NestedTensorSpec, capacity: int) -> None:
        """Creates the store, without episodes.

        Args:
          data_spec: The nest of specs of a frame.
          capacity: The number of episodes that the store holds.
        """
        super().__init__()
        self._capacity = capacity
        self.table = episodic_table.EpisodicTable(data_spec, capacity)
        self.num_writes = _variable("num_writes", 0)
        self.last_episode = _variable("last_episode", NO_EPISODE)
        self.ids = _variable("episode_ids", NO_EPISODE, [capacity])
        self.lengths = _variable("episode_lengths", 0, [capacity])
        self.completed = _variable("completed", 0, [capacity], tf.uint8)

    def begin(self, episode_ids: tf.Tensor, begin: Any) -> tf.Tensor:
        """Returns `episode_ids`, `[N]`, with a new id for each episode that begins.

        An episode begins where `begin` is true or the given id is negative.
        """
        new = (episode_ids < 0) | tf.convert_to_tensor(begin, tf.bool)
        last = self.last_episode.read_value()
        numbered = last + tf.cumsum(tf.cast(new, tf.int64))
        new_ids = tf.boolean_mask(numbered, new)
        rows = new_ids % self._capacity
        with tf.control_dependencies([_put(self.ids, rows, NO_EPISODE)]):
            empty = self.empty(rows)
            count = self.last_episode.assign(numbered[-1], read_value=False)
        with tf.control_dependencies([empty, count]):
            name = _put(self.ids, rows, new_ids)
        with tf.control_dependencies([name]):
            return tf.where(new, numbered, episode_ids)

    def writable(self, episode_ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds the episodes that the store still holds.

        Args:
          episode_ids: int64 `[N]`.

        Returns:
          The rows of these episodes, and their indices in `episode_ids`, both int64
          `[M]`.
        """
        held = tf.reshape(tf.where(self.is_held(episode_ids)), [-1])
        return tf.gather(episode_ids, held) % self._capacity, held

    def is_held(self, episode_ids: tf.Tensor) -> tf.Tensor:
        """Returns whether the store still holds the episodes, bool `[N]`."""
        row_ids = tf.gather(self.ids, episode_ids % self._capacity)
        return (episode_ids >= 0) & (row_ids == episode_ids)

    def publish(
        self, written: Any, rows: tf.Tensor, numbers: Any, ended: tf.Tensor
    ) -> Any:
        """Makes frames visible once `written` is done; returns the operation."""
        ended = tf.maximum(tf.gather(self.completed, rows), tf.cast(ended, tf.uint8))
        numbers = tf.broadcast_to(tf.cast(numbers, tf.int64), tf.shape(rows))
        with tf.control_dependencies([written]):
            return tf.group(
                self.lengths.scatter_add(tf.IndexedSlices(numbers, rows)),
                _put(self.completed, rows, ended),
                self.num_writes.assign_add(
                    tf.cast(tf.size(rows) > 0, tf.int64), read_value=False
                ),
            )

    def empty(self, rows: tf.Tensor) -> Any:
        """Removes the frames of `rows`; returns the operation that does so."""
        with tf.control_dependencies([_put(self.lengths, rows, 0)]):
            return tf.group(self.table.clear_rows(rows), _put(self.completed, rows, 0))

    def clear(self, forget_ids: bool) -> None:
        """Empties all rows; running episodes keep their ids unless `forget_ids`."""
        rows = tf.range(self._capacity, dtype=tf.int64)
        self.empty(rows)
        self.num_writes.assign(0)
        if forget_ids:
            _put(self.ids, rows, NO_EPISODE)
            self.last_episode.assign(NO_EPISODE)

    def sampling_counts(
        self, num_steps: int | None, completed_only: bool
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns each row's episode id, length and number of possible samples.

        Each is int64 `[capacity]`. A sample is a window of `num_steps` frames, or a
        whole episode if `num_steps` is None.
        """
        # The ids are read first: if they are unchanged afterwards, no episode was
        # replaced.
        ids = self.ids.read_value()
        with tf.control_dependencies([ids]):
            lengths = self.lengths.read_value()
            completed = self.completed.read_value()
        if num_steps is None:
            counts = tf.minimum(lengths, 1)
        else:
            counts = tf.maximum(lengths - num_steps + 1, 0)
        counts *= tf.cast(ids >= 0, tf.int64)
        if completed_only:
            counts *= tf.cast(completed, tf.int64)
        return ids, lengths, counts


def _variable(
    name: str,
    value: int,
    shape: tuple[int, ...] | list[int] = (),
    dtype: Any = tf.int64,
) -> tf.Variable:
    return tf.Variable(
        tf.fill(shape, tf.constant(value, dtype)), trainable=False, name=name
    )


def _put(variable: tf.Variable, rows: tf.Tensor, values: Any) -> Any:
    values = tf.convert_to_tensor(values, variable.dtype)
    values = tf.broadcast_to(values, tf.shape(rows))
    return tf.group(variable.scatter_update(tf.IndexedSlices(values, rows)))


class EpisodicReader(tf.Module, mixins.Untracked):
    """Reads episodes of a store, or windows of frames within an episode."""

    def __init__(
        self,
        data_spec: types.NestedTensorSpec,
        store: EpisodicStore,
        completed_only: bool,
        generator: tf.random.Generator,
        device: str | None,
    ) -> None:
        """Creates the reader.

        Args:
          data_spec: The nest of specs of a frame.
          store: The store to read.
          completed_only: Whether to leave out episodes that have not ended.
          generator: The source of random numbers.
          device: The device on which samples are gathered; None does not set one.
        """
        super().__init__()
        self._set_untracked("_data_spec", data_spec)
        self._store = store
        self._completed_only = completed_only
        self._generator = generator
        self._device = device
        # This function is for eager callers. Each reader has its own, so that traces do
        # not accumulate.
        self._episode_compiled = tf.function(trace_counts.of_one_object(self._episode))
        self._gather_compiled = tf.function(trace_counts.of_one_object(self._gather))

    def episode(self) -> tuple[Any, BufferInfo]:
        """Returns one whole episode, drawn uniformly; each leaf is `[T, ...]`."""
        eager = tf.executing_eagerly()
        while True:
            items, info, intact = self._episode_compiled() if eager else self._episode()
            if not eager or intact:
                return items, info

    def samples(self, num_steps: int | None, num_parallel_calls: Any) -> Any:
        """Returns an endless dataset of windows, or of episodes if `num_steps` is None.

        Windows are drawn uniformly; none crosses the end of an episode.
        """

        def read(
            lists: Any, start: Any, number: Any, info: BufferInfo, intact: tf.Tensor
        ) -> tuple[Any, BufferInfo]:
            del intact
            number = number if num_steps is None else num_steps
            return self._store.table.slice(lists, start, number), info

        return (
            tf.data.Dataset.counter()
            .map(lambda _: self._draw(num_steps), num_parallel_calls)
            .filter(lambda _lists, _start, _number, _info, intact: intact)
            .map(read, num_parallel_calls)
        )

    def single_pass(
        self,
        num_steps: int | None,
        shift: int | None,
        full: bool,
        num_parallel_calls: Any,
    ) -> tf.data.Dataset:
        """Returns a dataset of all episodes' windows in order.

        Windows shorter than `num_steps` are left out if `full`.
        """

        def episodes(_: tf.Tensor) -> tf.data.Dataset:
            rows, lengths, ids = self._in_order()
            return tf.data.Dataset.from_tensor_slices((rows, lengths, ids))

        def windows(row: Any, length: Any, episode_id: Any) -> tf.data.Dataset:
            if num_steps is None:
                starts, ends = tf.constant([0], tf.int64), length[tf.newaxis]
            else:
                limit = tf.maximum(length - num_steps + 1, 0) if full else length
                starts = tf.range(0, limit, shift)
                ends = tf.minimum(starts + num_steps, length)
            same = tf.ones_like(starts)
            return tf.data.Dataset.from_tensor_slices(
                (row * same, starts, ends, episode_id * same)
            )

        def read(row: Any, start: Any, end: Any, episode_id: Any) -> Any:
            lists = self._store.table.get_episode_lists(row)
            number = num_steps if full and num_steps is not None else end - start
            items = self._store.table.slice(lists, start, number)
            return items, BufferInfo(episode_id, ())

        # The episodes are looked up when an iterator is created, not here.
        dataset = tf.data.Dataset.range(1).flat_map(episodes).flat_map(windows)
        return dataset.map(read, num_parallel_calls)

    def _in_order(self) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns rows, lengths and ids of the episodes to read, the oldest first."""
        ids, lengths, counts = self._store.sampling_counts(None, self._completed_only)
        rows = tf.argsort(ids)
        rows = tf.boolean_mask(rows, tf.gather(counts, rows) > 0)
        return tf.cast(rows, tf.int64), tf.gather(lengths, rows), tf.gather(ids, rows)

    def gather_all(self) -> Any:
        """Returns all frames of all episodes one after another, `[1, T, ...]`."""
        return self._gather_compiled()

    def _gather(self) -> Any:
        rows, _, _ = self._in_order()
        number = tf.size(rows)
        arrays = tf.nest.map_structure(
            lambda spec: tf.TensorArray(
                spec.dtype,
                size=number,
                infer_shape=False,
                element_shape=[None, *spec.shape],
            ),
            self._data_spec,
        )

        def write(i: tf.Tensor, arrays: Any) -> tuple[tf.Tensor, Any]:
            episode = self._store.table.get_episode_values(rows[i])
            return i + 1, tf.nest.map_structure(
                lambda array, value: array.write(i, value), arrays, episode
            )

        _, arrays = tf.while_loop(lambda i, _: i < number, write, (0, arrays))
        return tf.nest.map_structure(lambda array: array.concat()[tf.newaxis], arrays)

    def _episode(self) -> tuple[Any, BufferInfo, tf.Tensor]:
        lists, start, number, info, intact = self._draw(None)
        # An episode that was replaced may have fewer frames now, or none.
        number = tf.where(intact, number, 0)
        return self._store.table.slice(lists, start, number), info, intact

    def _draw(self, num_steps: int | None) -> tuple[Any, Any, Any, BufferInfo, Any]:
        """Draws a window, or an episode, uniformly.

        Returns the TensorLists of the episode, the number of the first frame, the
        number of frames, the info, and False if the episode was replaced in the
        meantime.
        """
        with replay_buffer.placed(self._device), tf.name_scope("sample"):
            seed = seeds.next_seed(self._generator)
            ids, lengths, counts = self._store.sampling_counts(
                num_steps, self._completed_only
            )
            ends = tf.cumsum(counts)
            with tf.control_dependencies(self._assert_enough(ends[-1], num_steps)):
                hit = seeds.uniform(seed, [], maxval=ends[-1], dtype=tf.int64)
            row = tf.searchsorted(ends, hit[tf.newaxis], side="right")[0]
            start = hit - ends[row] + counts[row]
            lists = self._store.table.get_episode_lists(row)
            with tf.control_dependencies(tf.nest.flatten(lists)):
                intact = tf.gather(self._store.ids, row) == ids[row]
            number = lengths[row] if num_steps is None else num_steps
            probability = 1.0 / tf.cast(ends[-1], tf.float32)
            return lists, start, number, BufferInfo(ids[row], probability), intact

    def _assert_enough(self, total: tf.Tensor, num_steps: int | None) -> list[Any]:
        what = "a completed episode" if self._completed_only else "an episode"
        needed = f"sampling needs {what} of at least {num_steps or 1} frames"
        longest = tf.reduce_max(self._store.lengths)
        empty = [
            f"EpisodicReplayBuffer is empty: {needed}. Add items before sampling the "
            "buffer."
        ]
        short = [
            f"EpisodicReplayBuffer is too short: {needed}; its longest episode so far, "
            "completed or not, has",
            longest,
            "frames. Add more items before sampling the buffer.",
        ]
        return [
            tf.raw_ops.Assert(condition=longest > 0, data=empty),
            tf.raw_ops.Assert(condition=total > 0, data=short),
        ]
