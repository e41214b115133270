"""The base class of buffers that keep a ring of frames in `tf.Variable`s.

Frame number `i` of environment `b` lies in row `i % R * B + b` of one flat table, so
that the frames of one step are a block, written by one operation. `R` is one more than
the `max_length` frames that can be sampled, and this extra block makes it safe to
sample while a writer is at work. A frame is written into a row that is no longer
sampled. Only then does the head advance, which adds the new frame and removes the
oldest one.

A window of frames is identified by the *key* of its first frame: `i * B + b`.

The buffer's `RowFormat` converts frames to stored rows and back. If a format reads
frames before a window, the ring has that many further blocks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.compilation import accelerators, fast_function, trace_counts
from tfrl.compilation.python_calls import host_calls
from tfrl.replay_buffers import batch_check, replay_buffer, table
from tfrl.replay_buffers.ring import row_format as row_formats
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds

if TYPE_CHECKING:
    from tfrl.typing import types

BufferInfo = replay_buffer.BufferInfo


class RingReplayBuffer(replay_buffer.ReplayBuffer):
    """Stores batches of frames; samples frames, or windows of successive frames.

    Each of the `batch_size` environments has its own ring of `max_length` frames.
    A sample is drawn from all windows of `num_steps` frames that lie within a ring from
    its oldest to its newest frame, so none joins the newest frame to the oldest. The
    buffer does not know what its frames mean: a window may cross an episode's end,
    which agents mask.

    One writer and any number of samplers may work at the same time; several writers
    must take turns.

    Subclasses override `_choose`, which draws the windows, and may override `_enter`,
    which is called for every new batch of frames.
    """

    def __init__(
        self,
        data_spec: types.NestedTensorSpec,
        batch_size: int,
        max_length: int = 1000,
        scope: str | None = None,
        device: str | None = None,
        table_fn: Callable[..., Any] = table.PackedTable,
        dataset_drop_remainder: bool = False,
        dataset_window_shift: int | None = None,
        stateful_dataset: bool = False,
        *,
        seed: int | None = None,
        row_format: row_formats.RowFormat | None = None,
    ) -> None:
        """Creates the storage.

        Args:
          data_spec: A nest of `tf.TensorSpec`s of one frame, without batch and time.
          batch_size: The number of environments that are written together (`B`).
          max_length: The number of frames of each environment that are kept (`L`).
          scope: The prefix of the variables' names; None takes the class's name.
          device: The device of the variables; None leaves it to TensorFlow.
          table_fn: A function that makes the storage from the spec and the number of
            rows.
          dataset_drop_remainder: Whether a deterministic pass drops batches and windows
            that are not full.
          dataset_window_shift: The number of frames from the start of one window to the
            start of the next in a deterministic pass; None takes `num_steps`, so that
            windows do not overlap.
          stateful_dataset: The value of the property of the same name. It has no other
            effect, because all datasets read variables.
          seed: The seed of the sampling; None follows `tf.random.set_seed`.
          row_format: The conversion of frames to stored rows and back, such as
            `FrameStacking`; None stores frames unchanged.

        Raises:
          ValueError: If a size is not positive, or a spec cannot be stored.
        """
        number_checks.check_sizes(batch_size=batch_size, max_length=max_length)
        number_checks.check_sizes(
            optional=True, dataset_window_shift=dataset_window_shift
        )
        super().__init__(data_spec, batch_size * max_length, stateful_dataset)
        self._batch_size = int(batch_size)
        self._max_length = int(max_length)
        self._format = row_format or row_formats.RowFormat()
        self._ring = self._max_length + 1 + self._format.context_frames
        self._scope = type(self).__name__ if scope is None else scope
        self._device = device
        self._table_fn = table_fn
        self._drop_remainder = dataset_drop_remainder
        self._window_shift = dataset_window_shift
        with self._placed(), tf.name_scope(self._scope):
            self._table = table_fn(
                self._format.stored_spec(data_spec), self._batch_size * self._ring
            )
            # The number of the newest frame.
            self._last_id = tf.Variable(
                -1, dtype=tf.int64, trainable=False, name="last_id"
            )
            self._generator = seeds.make_generator(seed)
        # This function is for eager callers. Each buffer has its own, so that traces do
        # not accumulate.
        self._draw_compiled = tf.function(
            trace_counts.of_one_object(self._draw), autograph=False
        )
        self._write_compiled = fast_function.fast_function(self._write, autograph=False)
        self._read_all_compiled = fast_function.fast_function(
            self._read_all, autograph=False
        )
        self._check_batch = batch_check.BatchCheck(data_spec, self._batch_size)

    def variables(self) -> list[tf.Variable]:
        """Returns the storage, the head and the state of the random generator."""
        return [*self._table.variables(), self._last_id, self._generator.state]

    @property
    def supports_xla(self) -> bool:
        """Whether XLA can compile the calls, including any calls to Python."""
        return not self.calls_python or host_calls.obstacle() is None

    @property
    def calls_python(self) -> bool:
        """Whether samples call Python: if the row format has functions on the host."""
        return self._format.calls_python

    def check_collected(self) -> None:
        """Checks the first frames of a run; see `RowFormat.check_collected`."""
        self._format.check_collected(self.gather_all)

    @contextlib.contextmanager
    def reraise(self) -> Iterator[None]:
        """Raises exceptions of the row format's Python functions as they are."""
        with self._format.reraise():
            yield

    @property
    def draws_by_seed(self) -> bool:
        """Whether `sample` takes a seed: always."""
        return True

    @property
    def batch_size(self) -> int:
        """The number of environments that are written together."""
        return self._batch_size

    @property
    def max_length(self) -> int:
        """The number of frames of each environment that are kept."""
        return self._max_length

    @property
    def device(self) -> str | None:
        """The device that was given to the constructor."""
        return self._device

    @property
    def table_fn(self) -> Callable[..., Any]:
        """The function that made the storage."""
        return self._table_fn

    @property
    def scope(self) -> str:
        """The prefix of the variables' names."""
        return self._scope

    def sample(
        self,
        sample_batch_size: int | None = None,
        num_steps: int | None = None,
        seed: int | tf.Tensor | None = None,
    ) -> tuple[Any, BufferInfo]:
        """Returns random windows; the draw depends only on the contents and `seed`.

        This is for loops that read the buffer's variables directly, with or without
        XLA.

        Args:
          sample_batch_size: The number of windows to draw (`N`); None draws one window
            without a batch dimension.
          num_steps: The number of frames in a window (`T`); None gives single frames
            without a time dimension.
          seed: An integer, or an integer tensor `[2]`; None takes the next seed of the
            buffer's own generator.

        Returns:
          Items `[N, T, ...]` and their `BufferInfo`: the frames' ids, int64 `[N, T]`,
          counted in each environment from 0, and the windows' probabilities, `[N]`.

        Raises:
          ValueError: If `num_steps` is larger than `max_length`.
          tf.errors.InvalidArgumentError: If the buffer is empty, or holds fewer than
            `num_steps` frames of each environment. (XLA compiles the check away, and a
            loop on an accelerator leaves it out.)
        """
        number_checks.check_sizes(
            optional=True, sample_batch_size=sample_batch_size, num_steps=num_steps
        )
        self.check_fits(num_steps)
        if seed is not None:
            seed = tf.cast(seeds.as_seed(seed), tf.int64)
        if not tf.executing_eagerly():
            items, info, intact = self._draw(sample_batch_size, num_steps, seed)
            overtaken = [
                f"{type(self).__name__}.sample: a writer outside this tf.function "
                "overtook it. Sample through as_dataset, which then draws again."
            ]
            check = accelerators.assert_true(intact, overtaken)
            with tf.control_dependencies([check]):
                return tf.nest.map_structure(tf.identity, (items, info))
        while True:
            items, info, intact = self._draw_compiled(
                sample_batch_size, num_steps, seed
            )
            if intact:
                return items, info
            seed = None if seed is None else seed + tf.constant([0, 1], tf.int64)

    @property
    def can_rewrite(self) -> bool:
        """Whether `rewrite` works: if rows are the frames themselves."""
        return type(self._format) is row_formats.RowFormat

    def rewrite(self, keys: Any, items: Any) -> Any:
        """Writes drawn windows back; returns the operation (None if eager).

        A frame that is in several windows becomes what the last of them has.

        Args:
          keys: The windows' keys, `info.keys` of a sample that was drawn since the last
            `add_batch`, int64 `[N]`.
          items: The windows, `[N, T, ...]` in the structure of the data spec.

        Raises:
          ValueError: If the buffer's row format changes frames.
        """
        if not self.can_rewrite:
            raise ValueError(
                f"rewrite: got a buffer with a {type(self._format).__name__}, whose "
                "rows are not frames; make it without a row_format."
            )
        with self._placed(), tf.name_scope("rewrite"):
            starts, columns = self._places(tf.convert_to_tensor(keys, tf.int64))
            if isinstance(columns, tf.Tensor):
                columns = columns[:, tf.newaxis]
            length = tf.shape(tf.nest.flatten(items)[0], tf.int64)[1]
            ids = starts[:, tf.newaxis] + tf.range(length)
            rows = tf.reshape(self._rows(columns, ids), [-1])
            # All writes of a row have the same value, so their order does not matter.
            same = rows[:, tf.newaxis] == rows
            last = tf.reduce_max(tf.where(same, tf.range(tf.size(rows)), 0), axis=1)
            values = tf.nest.map_structure(
                lambda x: tf.gather(tf.reshape(x, [-1, *x.shape[2:]]), last), items
            )
            return self._table.write(rows, values)

    def _num_frames(self) -> tf.Tensor:
        return tf.minimum(self._last_id + 1, self._max_length) * self._batch_size

    def _add_batch(self, items: Any) -> tf.Tensor:
        items = self._check_batch(items)
        if tf.executing_eagerly():
            return self._write_compiled(items)
        return self._write(items)

    def _write(self, items: Any) -> tf.Tensor:
        with self._placed(), tf.name_scope("add_batch"):
            last_id = self._last_id.read_value()
            new_id = last_id + 1
            rows = self._format.encode(items, new_id, lambda: self._read_block(last_id))
            write = self._table.write_block(new_id % self._ring, rows)
            enter = self._enter(new_id)
            # Only a complete frame becomes visible.
            with tf.control_dependencies([write, enter]):
                publish = self._last_id.assign(new_id, read_value=False)
            with tf.control_dependencies([publish]):
                return tf.identity(new_id)

    def _get_next(
        self, sample_batch_size: int | None, num_steps: int | None, time_stacked: bool
    ) -> tuple[Any, BufferInfo]:
        items, info = self.sample(sample_batch_size, num_steps)
        if num_steps is None or time_stacked:
            return items, info
        axis = 0 if sample_batch_size is None else 1
        steps = [tf.unstack(x, num_steps, axis) for x in tf.nest.flatten(items)]
        items = tuple(
            tf.nest.pack_sequence_as(self._data_spec, step)
            for step in zip(*steps, strict=True)
        )
        return items, info._replace(ids=tuple(tf.unstack(info.ids, num_steps, axis)))

    def _gather_all(self) -> Any:
        if tf.executing_eagerly():
            return self._read_all_compiled()
        return self._read_all()

    def _read_all(self) -> Any:
        with self._placed(), tf.name_scope("gather_all"):
            newest = self._last_id.read_value()
            first, count = self._valid_starts(newest, 1)
            return self._read_columns(tf.range(first, first + count), newest)

    def _clear(self) -> None:
        self._last_id.assign(-1)

    def _choose(
        self, seed: tf.Tensor, shape: list[int], first: tf.Tensor, count: tf.Tensor
    ) -> tuple[tf.Tensor, Any]:
        """Draws windows, each starting at one of the `count` frames from `first` on.

        Returns the keys of their first frames, int64 of `shape`, and their `BufferInfo`
        (or a similar tuple); the caller fills in its `ids`.
        """
        raise NotImplementedError(f"{type(self).__name__}.sample")

    def _enter(self, new_id: tf.Tensor) -> Any:
        """Records the frames that are being written; returns the operation."""
        del new_id
        return tf.no_op()

    def _draw(
        self,
        sample_batch_size: int | None,
        num_steps: int | None,
        seed: tf.Tensor | None,
    ) -> tuple[Any, BufferInfo, tf.Tensor]:
        """Returns items, their info, and whether no writer can have overwritten them.

        The head is read again after the rows were gathered: rows that are still valid
        then were not written to in between, because a writer works in the extra block.
        """
        shape = [] if sample_batch_size is None else [sample_batch_size]
        with self._placed(), tf.name_scope("sample"):
            if seed is None:
                seed = seeds.next_seed(self._generator)
            head = self._last_id.read_value()
            first, count = self._valid_starts(head, num_steps or 1)
            checks = self._assert_enough(head, count, num_steps or 1)
            with tf.control_dependencies(checks):
                keys, info = self._choose(seed, shape, first, tf.identity(count))
            starts, columns = self._places(keys)
            ids = first_ids = starts
            if num_steps is not None:
                first_ids = tf.expand_dims(starts, -1)
                ids = first_ids + tf.range(num_steps, dtype=tf.int64)
                if tf.is_tensor(columns):
                    columns = tf.expand_dims(columns, -1)
            items = self._decode(columns, ids, head, first_ids, seed)
            with tf.control_dependencies(tf.nest.flatten(items)):
                head_after = self._last_id.read_value()
            # The head decreases if the buffer is cleared.
            intact = (head_after >= head) & tf.reduce_all(
                starts > head_after - self._max_length
            )
            return items, info._replace(ids=ids), intact

    def _as_dataset(
        self,
        sample_batch_size: int | None,
        num_steps: int | None,
        sequence_preprocess_fn: Callable[[Any], Any] | None,
        num_parallel_calls: int | None,
    ) -> tf.data.Dataset:
        self.check_fits(num_steps)

        # AutoGraph would convert all functions called here, at every start.
        @tf.autograph.experimental.do_not_convert
        def draw(_: tf.Tensor) -> tuple[Any, BufferInfo, tf.Tensor]:
            return self._draw(sample_batch_size, num_steps, None)

        def finish(items: Any, info: BufferInfo, intact: tf.Tensor) -> Any:
            del intact
            if sequence_preprocess_fn is not None:
                items = sequence_preprocess_fn(items)
            return items, info

        return (
            # `Dataset.counter` would add one more function call.
            tf.data.Dataset.from_tensors(0)
            .repeat()
            .map(draw, num_parallel_calls)
            # This costs next to nothing; a tf.while_loop would take a third more time.
            .filter(lambda _items, _info, intact: intact)
            .map(finish, num_parallel_calls)
        )

    def _drawing(
        self, sample_batch_size: int | None, num_steps: int | None
    ) -> Callable[[], Any] | None:
        own = ("_as_dataset", "get_next", "_get_next", "sample")
        if any(
            getattr(type(self), name) is not getattr(RingReplayBuffer, name)
            for name in own
        ):
            return None  # The subclass decides what its elements are.

        @tf.autograph.experimental.do_not_convert
        def draw() -> tuple[Any, BufferInfo]:
            items, info, intact = self._draw(sample_batch_size, num_steps, None)

            # This is not part of the outer graph, where each operation of a branch
            # takes time even if the other branch is taken, which is nearly always the
            # case.
            @tf.function(autograph=False, experimental_attributes={"_noinline": True})
            def redraw() -> Any:
                def again(_: tf.Tensor, drawn: Any) -> tuple[tf.Tensor, Any]:
                    *drawn, intact = self._draw(sample_batch_size, num_steps, None)
                    return intact, tuple(drawn)

                return tf.while_loop(
                    lambda intact, _: ~intact,
                    again,
                    (tf.constant(False), (items, info)),
                )[1]

            return tf.cond(intact, lambda: (items, info), redraw)

        return draw

    def _single_deterministic_pass_dataset(
        self,
        sample_batch_size: int | None,
        num_steps: int | None,
        sequence_preprocess_fn: Callable[[Any], Any] | None,
        num_parallel_calls: int | None,
    ) -> tf.data.Dataset:
        """Iterates over the environments in groups, and over the windows of each.

        A group is `sample_batch_size` environments, whose windows make one element;
        all of these windows must be full. Without a batch size, the last window may be
        shorter.
        """
        if sample_batch_size is not None:
            self.check_fits(num_steps)
        self._check_not_all_dropped(sample_batch_size, num_steps)
        group = sample_batch_size or 1
        steps = num_steps or 1
        # Without `num_steps` there are no windows to shift.
        stride = 1 if num_steps is None else self._window_shift or steps
        full = self._drop_remainder or sample_batch_size is not None

        def places(_: tf.Tensor) -> tf.data.Dataset:
            """Returns (first column, first id, end of ids) of every element."""
            head = self._last_id.read_value()
            first, count = self._valid_starts(head, steps if full else 1)
            with tf.control_dependencies(
                self._assert_enough(head, count, steps if full else 1)
            ):
                starts = tf.range(first, first + count, stride)
            whole_groups = self._batch_size // group * group
            columns = tf.range(
                whole_groups if self._drop_remainder else self._batch_size,
                delta=group,
                dtype=tf.int64,
            )
            columns, starts = tf.meshgrid(columns, starts, indexing="ij")
            ends = tf.minimum(starts + steps, head + 1)
            return tf.data.Dataset.from_tensor_slices(
                tuple(tf.reshape(x, [-1]) for x in (columns, starts, ends))
            )

        def read(column: tf.Tensor, start: tf.Tensor, end: tf.Tensor) -> Any:
            end_column = tf.minimum(column + group, self._batch_size)
            columns = tf.range(column, end_column)[:, None]
            ids = tf.broadcast_to(
                tf.range(start, end), [end_column - column, end - start]
            )
            static = [
                group
                if self._drop_remainder or self._batch_size % group == 0
                else None,
                steps if full else None,
            ]
            columns = tf.broadcast_to(columns, tf.shape(ids))
            columns, ids = (tf.ensure_shape(x, static) for x in (columns, ids))
            if num_steps is None:
                columns, ids = columns[:, 0], ids[:, 0]
            if sample_batch_size is None:
                columns, ids = columns[0], ids[0]
            items = self._decode(columns, ids, self._last_id.read_value())
            if sequence_preprocess_fn is not None:
                items = sequence_preprocess_fn(items)
            return items, BufferInfo(ids, ())

        # The places are computed when an iterator is created, not here.
        dataset = tf.data.Dataset.range(1).flat_map(places)
        return dataset.map(read, num_parallel_calls)

    def _check_not_all_dropped(
        self, sample_batch_size: int | None, num_steps: int | None
    ) -> None:
        if not self._drop_remainder:
            return
        for name, value, limit_name, limit in (
            ("sample_batch_size", sample_batch_size, "batch_size", self._batch_size),
            ("num_steps", num_steps, "max_length", self._max_length),
        ):
            if value is not None and value > limit:
                raise ValueError(
                    f"{name}: got {value}, more than {limit_name}={limit}, and "
                    "dataset_drop_remainder is True: ALL data will be dropped by the "
                    f"deterministic pass. Ask for at most {limit}."
                )

    def _placed(self) -> contextlib.AbstractContextManager[Any]:
        return replay_buffer.placed(self._device)

    def _places(self, keys: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor | int]:
        """Returns the ids and the columns of keys; a single 0 if all columns are 0."""
        if self._batch_size == 1:
            return keys, 0
        return keys // self._batch_size, keys % self._batch_size

    def _decode(
        self,
        columns: tf.Tensor | int,
        ids: tf.Tensor,
        newest: tf.Tensor,
        first: tf.Tensor | None = None,
        seed: tf.Tensor | None = None,
    ) -> Any:
        """Returns the frames `ids`, `[...]`, of the environments `columns`."""

        def read(others: tf.Tensor) -> Any:
            at = columns
            if isinstance(at, tf.Tensor) and at.shape.rank:
                more = others.shape.rank - ids.shape.rank
                at = at[(..., *[tf.newaxis] * more)]
            return self._table.read(self._rows(at, others))

        return self._format.decode(
            row_formats.Window(
                ids,
                ids if first is None else first,
                newest,
                self._max_length,
                seed,
                read,
            )
        )

    def _read_columns(self, ids: tf.Tensor, newest: tf.Tensor) -> Any:
        """Returns the frames `ids`, `[T]`, of all environments, `[B, T, ...]`."""
        columns = tf.range(self._batch_size, dtype=tf.int64)[:, None]
        return self._decode(columns, ids + tf.zeros_like(columns), newest)

    def _read_block(self, frame: tf.Tensor) -> Any:
        """Returns the stored rows of one frame of all environments, `[B, ...]`."""
        columns = tf.range(self._batch_size, dtype=tf.int64)
        return self._table.read(self._rows(columns, frame))

    def _rows(self, columns: tf.Tensor | int, ids: tf.Tensor) -> tf.Tensor:
        return ids % self._ring * self._batch_size + columns

    def _valid_starts(
        self, head: tf.Tensor, num_steps: int
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the first valid start of a window, and the number of valid starts."""
        held = tf.minimum(head + 1, self._max_length)
        return head + 1 - held, tf.maximum(held + (1 - num_steps), 0)

    def _assert_enough(
        self, head: tf.Tensor, count: tf.Tensor, num_steps: int
    ) -> list[Any]:
        name = type(self).__name__
        needed = f"num_steps={num_steps} needs {num_steps} frames of each environment"
        empty = [f"{name} is empty: {needed}. Add items before sampling the buffer."]
        short = [
            f"{name} is too short: {needed}, and it holds",
            head + 1,
            "so far. Add more items before sampling the buffer.",
        ]
        return [
            accelerators.assert_true(head >= 0, empty),
            accelerators.assert_true(count > 0, short),
        ]
