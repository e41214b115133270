"""`ReplayBufferConformance`: the suite for replay buffers."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.replay_buffers import replay_buffer as replay_buffer_lib
from tfrl.testing.conformance import Conformance, check_same, fail

_COLUMN = 1_000


class ReplayBufferConformance(Conformance):
    """Checks that a `ReplayBuffer` returns the frames that were written.

    Implement `make_replay_buffer`. The written frames are numbered, so that the checks
    recognise the frames in a sample.

    Attributes:
      batch_size: The number of columns of each write.
      max_length: The number of frames of each column that the buffer holds.
      has_deterministic_pass: Whether the buffer supports `single_deterministic_pass`.
      is_checkpointable: Whether `tf.train.Checkpoint` saves the buffer's contents.
      runs_in_graphs: Whether a `tf.function` can write to the buffer.
    """

    batch_size: int = 2
    max_length: int = 6
    has_deterministic_pass: bool = True
    is_checkpointable: bool = True
    runs_in_graphs: bool = True

    def make_replay_buffer(
        self, data_spec: Any, batch_size: int, max_length: int
    ) -> replay_buffer_lib.ReplayBuffer:
        """Returns a new buffer with `batch_size` columns of `max_length` frames."""
        raise NotImplementedError(
            f"{type(self).__name__}.make_replay_buffer: not written; return a new "
            "buffer from it."
        )

    def items_of(self, element: Any) -> Any:
        """Returns the items of a drawn element `(items, BufferInfo)`."""
        return element[0]

    @property
    def data_spec(self) -> Any:
        """The specs of the items: a nest with four different dtypes."""
        return {
            "number": tf.TensorSpec([], tf.int64, "number"),
            "image": tf.TensorSpec([2, 2], tf.uint8, "image"),
            "pair": (
                tf.TensorSpec([3], tf.float32, "vector"),
                tf.TensorSpec([], tf.bool, "flag"),
            ),
        }

    def make_items(self, frame: int) -> Any:
        """Returns frame number `frame` of all columns, `[batch_size, ...]`."""
        return self._items(np.arange(self.batch_size) * _COLUMN + frame)

    def test_it_counts_its_frames(self) -> None:
        """Checks that `num_frames` grows to `capacity` and stays there."""
        buffer = self._buffer()
        self._check_count(buffer, 0)
        for frame in range(self.max_length + 2):
            buffer.add_batch(self.make_items(frame))
            frames = min(frame + 1, self.max_length) * self.batch_size
            self._check_count(buffer, frames)
        if buffer.capacity != self.max_length * self.batch_size:
            fail(
                "capacity",
                f"{buffer.capacity}",
                f"{self.max_length * self.batch_size} frames, of all columns",
                "pass batch_size * max_length to super().__init__",
            )

    def test_samples_are_what_was_written(self) -> None:
        """Checks that all leaves of a drawn frame belong to the same written frame."""
        buffer = self._filled(self.max_length + 3)
        for element in buffer.as_dataset(sample_batch_size=5).take(10):
            self._check_items(self.items_of(element), (5,))

    def test_every_frame_can_be_drawn(self) -> None:
        """Checks that exactly the last `max_length` frames of each column are drawn."""
        buffer = self._filled(self.max_length + 3)
        drawn: set[int] = set()
        # One of n frames is missed with a probability of less than n * exp(-20).
        dataset = buffer.as_dataset(sample_batch_size=20 * self.batch_size)
        for element in dataset.take(self.max_length):
            drawn.update(np.asarray(self.items_of(element)["number"]).tolist())
        frames = range(3, self.max_length + 3)
        wanted = {c * _COLUMN + f for c in range(self.batch_size) for f in frames}
        if drawn != wanted:
            fail(
                "the frames drawn",
                f"{sorted(drawn)}",
                f"{sorted(wanted)}",
                "draw uniformly among the items that have not been overwritten",
            )

    def test_sequences_are_successive_frames_of_one_column(self) -> None:
        """Checks `[B, T, ...]` before and after the ring is overwritten in part."""
        for frames in (self.max_length - 1, self.max_length + 3):
            buffer = self._filled(frames)
            dataset = buffer.as_dataset(sample_batch_size=4, num_steps=3)
            for element in dataset.take(20):
                items = self.items_of(element)
                self._check_items(items, (4, 3))
                steps = np.diff(np.asarray(items["number"]), axis=1)
                if not (steps == 1).all():
                    fail(
                        f"sequences after {frames} frames",
                        f"numbers {np.asarray(items['number']).tolist()}",
                        "successive frames of one column",
                        "leave out starts whose window crosses the ring's seam",
                    )

    def test_samples_are_never_older_than_the_last_write(self) -> None:
        """Checks that an element drawn after a write can hold it: no prefetching."""
        buffer = self._filled(self.max_length)
        iterator = iter(buffer.as_dataset(sample_batch_size=8))
        next(iterator)
        for frame in range(self.max_length, 2 * self.max_length):
            buffer.add_batch(self.make_items(frame))
        items = self.items_of(next(iterator))
        oldest = int((np.asarray(items["number"]) % _COLUMN).min())
        if oldest < self.max_length:
            fail(
                "the element after the buffer was overwritten",
                f"frame {oldest}",
                f"frames from {self.max_length} on",
                "do not prefetch; set options.autotune.enabled = False",
            )

    def test_all_frames_come_out_in_order(self) -> None:
        """Checks that `gather_all` returns `[B, T, ...]`, the oldest frame first."""
        buffer = self._filled(self.max_length + 2)
        items = buffer.gather_all()
        frames = np.arange(2, self.max_length + 2)
        wanted = np.arange(self.batch_size)[:, None] * _COLUMN + frames
        check_same(
            wanted,
            np.asarray(items["number"]),
            "gather_all()",
            "each column's frames, the oldest first",
            "start at the oldest frame of the ring",
        )
        self._check_items(items, (self.batch_size, self.max_length))

    def test_a_deterministic_pass_shows_each_frame_once(self) -> None:
        """Checks `single_deterministic_pass`; skipped if it is not supported."""
        if not self.has_deterministic_pass:
            return
        buffer = self._filled(self.max_length + 2)
        numbers = [
            int(self.items_of(element)["number"])
            for element in buffer.as_dataset(single_deterministic_pass=True)
        ]
        wanted = np.asarray(buffer.gather_all()["number"]).ravel().tolist()
        if sorted(numbers) != sorted(wanted):
            fail(
                "as_dataset(single_deterministic_pass=True)",
                f"{numbers}",
                f"{wanted}, in the order of writing",
                "go once through the ring, the oldest first",
            )

    def test_a_cleared_buffer_is_empty(self) -> None:
        """Checks that `clear` removes all frames, and that writing works after it."""
        buffer = self._filled(self.max_length)
        buffer.clear()
        self._check_count(buffer, 0)
        buffer.add_batch(self.make_items(500))
        items = self.items_of(buffer.get_next(sample_batch_size=8))
        self._check_items(items, (8,))
        if (np.asarray(items["number"]) % _COLUMN != 500).any():
            fail(
                "a sample after clear()",
                f"{np.asarray(items['number']) % _COLUMN}",
                "the frame written since, 500",
                "set the head back in _clear",
            )

    def test_too_few_frames_are_an_error(self) -> None:
        """Checks that sampling an empty or too short buffer raises an error."""
        for frames, num_steps in ((0, None), (1, 3)):
            buffer = self._filled(frames)
            with _expected_error(f"get_next(2, {num_steps}) with {frames} frames"):
                buffer.get_next(2, num_steps)
            with _expected_error(f"as_dataset(2, {num_steps}) with {frames} frames"):
                next(iter(buffer.as_dataset(2, num_steps)))

    def test_items_unlike_the_spec_are_refused(self) -> None:
        """Checks that items of another batch, dtype or structure are not written."""
        buffer = self._filled(1)
        good = self.make_items(1)
        another_batch = tf.nest.map_structure(
            lambda leaf: np.concatenate([leaf, leaf]), good
        )
        wrong = {
            "a batch twice as large": another_batch,
            "float64 instead of int64": {
                **good,
                "number": good["number"].astype(np.float64),
            },
            "no leaf `image`": {k: v for k, v in good.items() if k != "image"},
        }
        for what, items in wrong.items():
            with _expected_error(f"add_batch of {what}"):
                buffer.add_batch(items)
        self._check_count(buffer, self.batch_size)

    def test_a_checkpoint_holds_the_frames(self) -> None:
        """Checks that a restored buffer is equal, if the buffer `is_checkpointable`."""
        if not self.is_checkpointable:
            return
        buffer, other = self._filled(self.max_length + 1), self._buffer()
        with tempfile.TemporaryDirectory() as folder:
            path = tf.train.Checkpoint(buffer=buffer).write(str(Path(folder, "c")))
            tf.train.Checkpoint(buffer=other).read(path)
        check_same(
            buffer.gather_all(),
            other.gather_all(),
            "gather_all() after restoring",
            "as saved",
            "keep contents and head in tf.Variables that are attributes",
        )

    def test_it_samples_in_a_graph_and_traces_once(self) -> None:
        """Checks writes and draws in a graph; skipped without `runs_in_graphs`."""
        if not self.runs_in_graphs:
            return
        buffer = self._filled(3)
        iterator = iter(buffer.as_dataset(sample_batch_size=4, num_steps=2))

        @tf.function(autograph=False)
        def write_and_sample(items: Any) -> Any:
            buffer.add_batch(items)
            with tf.control_dependencies([buffer.num_frames()]):
                return self.items_of(next(iterator))

        for frame in range(3, 6):
            items = tf.nest.map_structure(tf.constant, self.make_items(frame))
            self._check_items(write_and_sample(items), (4, 2))
        if write_and_sample.experimental_get_tracing_count() != 1:
            fail(
                "add_batch and next(iterator) in a tf.function",
                f"{write_and_sample.experimental_get_tracing_count()} traces",
                "one",
                "take no Python numbers that change into the graph",
            )

    def _items(self, number: np.ndarray) -> Any:
        """Returns items whose leaves can all be computed from `number`."""
        column = number[..., None]
        return {
            "number": number.astype(np.int64),
            "image": (column[..., None] + np.arange(4).reshape(2, 2)).astype(np.uint8),
            "pair": (
                (column + np.arange(3) / 4).astype(np.float32),
                number % 3 == 0,
            ),
        }

    def _buffer(self) -> replay_buffer_lib.ReplayBuffer:
        return self.make_replay_buffer(self.data_spec, self.batch_size, self.max_length)

    def _filled(self, frames: int) -> replay_buffer_lib.ReplayBuffer:
        buffer = self._buffer()
        for frame in range(frames):
            buffer.add_batch(self.make_items(frame))
        return buffer

    def _check_count(self, buffer: Any, frames: int) -> None:
        if int(buffer.num_frames()) != frames:
            fail(
                "num_frames()",
                f"{int(buffer.num_frames())}",
                f"{frames}, counting all columns",
                "return min(written, max_length) * batch_size",
            )

    def _check_items(self, items: Any, outer: tuple[int, ...]) -> None:
        number = np.asarray(items["number"])
        if number.shape != outer:
            fail(
                "a sample's shape",
                f"{number.shape}",
                f"{outer}",
                "stack samples as [B, T, ...]",
            )
        check_same(
            self._items(number),
            tf.nest.map_structure(np.asarray, items),
            "a sample",
            "all leaves of the frame with that number",
            "write and read all leaves at the same rows, with their dtypes",
        )


@contextlib.contextmanager
def _expected_error(what: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, RuntimeError, tf.errors.OpError):
        return
    fail(
        what,
        "no error",
        "a ValueError or tf.errors.InvalidArgumentError",
        "check it before anything is read or written",
    )
