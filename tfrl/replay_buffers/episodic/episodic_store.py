"""The variables of an episodic replay buffer, and the order in which they change.

Episodes are numbered as they begin, and episode `i` lies in row `i % capacity`, so a
new episode replaces the oldest one. Each row has its frames, a length and a mark of
completion. A row's episode number is removed before the row is cleared, and frames are
written before the length that makes them visible. So if a sampler gets a row's frames
and then finds the row's episode number unchanged, all the frames are of that episode.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.replay_buffers import episodic_table
from tfrl.typing import types

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
