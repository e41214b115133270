"""A replay buffer in `tf.Variable`s that samples uniformly."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.replay_buffers import replay_buffer
from tfrl.replay_buffers.ring import ring_replay_buffer
from tfrl.utils.random_numbers import seeds

BufferInfo = replay_buffer.BufferInfo


class TFUniformReplayBuffer(ring_replay_buffer.RingReplayBuffer):
    """Stores batches of frames; samples frames, or windows of successive frames.

    Each of the `batch_size` environments has its own ring of `max_length` frames.
    A sample is uniform over all windows of `num_steps` frames that lie within a ring
    from its oldest to its newest frame, so none joins the newest frame to the oldest.
    The buffer does not know what its frames mean: a window may cross an episode's end,
    which agents mask.

    One writer and any number of samplers may work at the same time; several writers
    must take turns.
    """

    def gather_first(self, num_frames: int) -> Any:
        """Returns the first frames that were added to each environment since `clear`.

        Like `gather_all`, but the result has a fixed shape, which XLA needs.

        Args:
          num_frames: The number of frames of each environment to return; at most
            `max_length`.

        Returns:
          Tensors `[B, num_frames, ...]` in the structure of the data spec. A frame that
          was not added yet, or is no longer held, is all zeros.
        """
        self.check_fits(num_frames)
        with self._placed(), tf.name_scope("gather_first"):
            ids = tf.range(num_frames, dtype=tf.int64)
            newest = self._last_id.read_value()
            first, count = self._valid_starts(newest, 1)
            held = (ids >= first) & (ids < first + count)

            def blank(leaf: tf.Tensor) -> tf.Tensor:
                shape = [1, num_frames, *[1] * (leaf.shape.rank - 2)]
                return tf.where(tf.reshape(held, shape), leaf, tf.zeros([], leaf.dtype))

            items = self._read_columns(ids, newest)
            return tf.nest.map_structure(blank, items)

    def _choose(
        self, seed: tf.Tensor, shape: list[int], first: tf.Tensor, count: tf.Tensor
    ) -> tuple[tf.Tensor, BufferInfo]:
        total = count * self._batch_size
        # Drawing 32-bit integers takes less time.
        dtype = tf.int32 if self._capacity < tf.int32.max else tf.int64
        hits = tf.cast(seeds.uniform(seed, shape, maxval=total, dtype=dtype), tf.int64)
        probabilities = tf.fill(shape, 1.0 / tf.cast(total, tf.float32))
        keys = first * self._batch_size + hits
        return keys, BufferInfo((), probabilities, keys)
