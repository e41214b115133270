"""`FrameStacking`, a buffer's row format that stores each frame of a stack once."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import tensorflow as tf

from tfrl.compilation import accelerators
from tfrl.replay_buffers.ring import row_format
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import number_checks


class StackedRow(NamedTuple):
    """A row of a buffer that stacks frames when it samples.

    Attributes:
      step: A `Trajectory` with the newest frame instead of each stack.
      age: The number of earlier rows that hold older frames of its stack; int64.
    """

    step: Any
    age: Any


class FrameStacking(row_format.RowFormat):
    """Stores the newest frame of each observation; stacks frames when sampling.

    An observation that a wrapper has stacked holds `num_frames` frames, and all but the
    newest are in the observations before it, too. A buffer with this format stores each
    frame once, so a million transitions with observations of uint8 `[84, 84, 4]` take 7
    GB instead of 28. Users write and sample the same observations as without it: a
    sampled stack is, byte for byte, the stack that the wrapper returned, even at the
    start of an episode. A stack at the start may be filled with the padding, or
    continue the stack before, as EnvPool's stacks do after a lost life.

    ```python
    replay_buffer = TFUniformReplayBuffer(
        agent.collect_data_spec,
        batch_size=environment.batch_size,
        max_length=1_000_000 // environment.batch_size,
        row_format=FrameStacking(4),
    )
    ```

    It fits `suite_atari`, whose last wrapper is `FrameStack4`, and Gymnasium's and
    EnvPool's Atari, with `axis=0` if the frames are the first axis. For `tfrl`'s
    `HistoryWrapper` the axis is 0 and the padding "zeros" (or "first" with
    `tile_first_step_obs`); for `tfrl.acme.wrappers.FrameStackingWrapper` the padding is
    "zeros". The observations must be stacked already when they are written; each write
    to the buffer checks them against the frame before, except where XLA compiles the
    check away, or a loop on an accelerator leaves it out.
    """

    def __init__(
        self,
        num_frames: int = 4,
        *,
        axis: int = -1,
        padding: Literal["first", "zeros"] = "first",
        is_stacked: Any = True,
    ) -> None:
        """Creates the format.

        Args:
          num_frames: The number of frames in an observation, including the current one.
          axis: The axis of the frames in an observation, oldest frame first: -1 for
            `[..., num_frames]`, 0 for `[num_frames, ...]`.
          padding: The frames for times before the episode: "first" repeats the
            episode's first frame, and "zeros" are zeros.
          is_stacked: Marks the observations that are stacks: True for all observations,
            or a nest of bools in the structure of the observation. Other observations
            are stored whole.

        Raises:
          TypeError: If `num_frames` or `axis` is not an integer.
          ValueError: If `num_frames` is below 2, or the axis or padding is unknown.
        """
        number_checks.check_integer(
            "num_frames", num_frames, 2, remedy="leave row_format out for single frames"
        )
        if axis not in (-1, 0):
            raise ValueError(
                f"axis: got {axis!r}, expected -1 or 0; give the axis along which the "
                "wrapper stacks, the last or the first."
            )
        if padding not in ("first", "zeros"):
            raise ValueError(
                f"padding: got {padding!r}, expected 'first' or 'zeros'; give the "
                "padding with which the wrapper fills the first stack of an episode."
            )
        self._num_frames = num_frames
        self._axis = axis
        self._padding = padding
        self._is_stacked = is_stacked
        self.context_frames = num_frames - 1

    def stored_spec(self, data_spec: Any) -> StackedRow:
        """Returns the specs of a row: the specs of a frame, without the older frames.

        Args:
          data_spec: The specs of a `Trajectory`, such as `agent.collect_data_spec`.

        Raises:
          TypeError: If `data_spec` is not a `Trajectory`.
          ValueError: If an observation does not hold `num_frames` frames.
        """
        if not isinstance(data_spec, trajectory.Trajectory):
            raise TypeError(
                f"data_spec: got a {type(data_spec).__name__}, expected a Trajectory, "
                "whose step_type tells where episodes start; give "
                "agent.collect_data_spec."
            )

        def newest(spec: tf.TensorSpec) -> tf.TensorSpec:
            shape = spec.shape.as_list()
            if not shape or shape.pop(self._axis) != self._num_frames:
                raise ValueError(
                    f"data_spec.observation: got shape {spec.shape}, expected "
                    f"{self._num_frames} frames along axis {self._axis}; give the "
                    "num_frames and the axis of the wrapper that stacks, or say in "
                    "is_stacked which observations are stacks."
                )
            return tf.TensorSpec(shape, spec.dtype, spec.name)

        step = self._map_stacks(newest, data_spec)
        return StackedRow(step, tf.TensorSpec([], tf.int64, "age"))

    def encode(self, items: Any, new_id: tf.Tensor, previous: Any) -> StackedRow:
        """Returns rows of the newest frames; checks the frames before the newest."""
        step_type = tf.convert_to_tensor(items.step_type)
        starts = accelerators.equal(step_type, ts.StepType.FIRST) | (new_id == 0)
        before = previous()

        def all_of(function: Any) -> tf.Tensor:
            """Whether `function` of each stack and the row before is True, `[B]`."""
            each = self._map_stacks(function, items, before.step, only_stacks=True)
            return tf.reduce_all(tf.stack(each), 0)

        begins = starts & all_of(lambda stack, _: self._is_padded(stack))
        follows = (new_id > 0) & all_of(
            lambda stack, last: _same(self._frame(stack, -2), last)
        )
        age = tf.where(
            begins,
            tf.zeros_like(before.age),
            tf.minimum(before.age + 1, self._num_frames - 1),
        )
        rows = self._map_stacks(lambda stack: self._frame(stack, -1), items)
        check = accelerators.assert_true(
            tf.reduce_all(begins | follows),
            [
                "observation: got a stack whose last frame but one is not the newest "
                "frame of the step before, or a first stack that differs from "
                f"padding={self._padding}. Expected observations that a wrapper "
                f"stacks along axis {self._axis}, oldest frame first. Give the axis "
                "and the padding of that wrapper, or say in is_stacked which "
                "observations are stacks, or leave row_format out. Frames that an "
                "empty buffer is given must start with an episode's FIRST."
            ],
        )
        with tf.control_dependencies([check]):
            return StackedRow(rows, tf.identity(age))

    def decode(self, window: row_format.Window) -> Any:
        """Returns the frames of a window with rebuilt stacks."""
        rows = window.read(window.ids)
        # The number of steps by which each frame of a stack lies back, `[...,
        # num_frames]`.
        back = tf.range(self._num_frames - 1, -1, -1, dtype=tf.int64)
        age = tf.expand_dims(rows.age, -1)
        held = back <= age
        frames = window.read(tf.expand_dims(window.ids, -1) - tf.minimum(back, age))
        outer = window.ids.shape.rank

        def stack(_: tf.Tensor, parts: tf.Tensor) -> tf.Tensor:
            if self._padding == "zeros":
                mask = held[(..., *[tf.newaxis] * (parts.shape.rank - outer - 1))]
                parts = tf.where(mask, parts, tf.zeros([], parts.dtype))
            return parts if self._axis == 0 else _last_axis(parts, outer)

        return self._map_stacks(stack, rows.step, frames.step)

    def _frame(self, stack: tf.Tensor, number: int) -> tf.Tensor:
        """Returns one of the frames of stacks `[B, ...]`."""
        return stack[:, number] if self._axis == 0 else stack[..., number]

    def _is_padded(self, stack: tf.Tensor) -> tf.Tensor:
        """Whether all frames before the newest are the padding, bool `[B]`."""
        axis = 1 if self._axis == 0 else -1
        *older, newest = tf.unstack(stack, self._num_frames, axis)
        padding = newest if self._padding == "first" else tf.zeros_like(newest)
        return tf.reduce_all(tf.stack([_same(x, padding) for x in older]), 0)

    def _map_stacks(
        self, function: Any, step: Any, *others: Any, only_stacks: bool = False
    ) -> Any:
        """Applies a function to the observations that are stacks.

        Returns the `Trajectory`, or with `only_stacks` a list of the results.
        """
        flat = [tf.nest.flatten(each.observation) for each in (step, *others)]
        are_stacks = [self._is_stacked] * len(flat[0])
        if not isinstance(self._is_stacked, bool):
            tf.nest.assert_same_structure(self._is_stacked, step.observation)
            are_stacks = tf.nest.flatten(self._is_stacked)
        mapped = [
            function(*leaves) if is_stack else leaves[0]
            for is_stack, *leaves in zip(are_stacks, *flat, strict=True)
        ]
        if only_stacks:
            pairs = zip(are_stacks, mapped, strict=True)
            return [result for is_stack, result in pairs if is_stack]
        observation = tf.nest.pack_sequence_as(step.observation, mapped)
        return step._replace(observation=observation)


def _same(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """Whether tensors `[B, ...]` are the same, bool `[B]`."""
    return tf.reduce_all(tf.equal(left, right), list(range(1, left.shape.rank)))


def _last_axis(parts: tf.Tensor, axis: int) -> tf.Tensor:
    """Returns `parts` with the given axis as the last."""
    if parts.dtype == tf.uint8 and parts.shape[axis] == 4:
        # A CPU adds words several times as fast as it transposes bytes.
        first, *others = [tf.cast(x, tf.uint32) for x in tf.unstack(parts, axis=axis)]
        for number, other in enumerate(others, 1):
            first += other * tf.constant(256**number, tf.uint32)
        return tf.bitcast(first, tf.uint8)
    rank = parts.shape.rank
    order = [*range(axis), *range(axis + 1, rank), axis]
    return tf.transpose(parts, order)
