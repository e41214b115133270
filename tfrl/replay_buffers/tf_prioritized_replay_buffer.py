"""A replay buffer in `tf.Variable`s that samples in proportion to priorities.

This is the proportional variant of Schaul et al., "Prioritized experience replay"
(2016, arXiv:1511.05952), with a sum tree of two levels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tfrl.compilation import accelerators
from tfrl.replay_buffers import table
from tfrl.replay_buffers.ring import ring_replay_buffer, sum_tree
from tfrl.replay_buffers.ring import (
    row_format as row_formats,
)
from tfrl.typing import types
from tfrl.utils import number_checks
from tfrl.utils.optimization import schedules
from tfrl.utils.random_numbers import seeds


class PrioritizedBufferInfo(NamedTuple):
    """Information about a sample beyond its items.

    Attributes:
      ids: The consecutive numbers of the frames, int64, shaped like one leaf of the
        items, as in `BufferInfo`.
      probabilities: The probability with which each window was drawn, float32 `[B]` or
        `[]`.
      keys: The windows' keys for `update_priorities`, int64 `[B]` or `[]`.
      weights: The importance weights, float32 `[B]` or `[]`; the mean over many samples
        is about 1.
    """

    ids: Any
    probabilities: Any
    keys: Any
    weights: Any


def importance_weights(
    probabilities: Any, number: Any, importance_exponent: Any, max_weight: float
) -> tf.Tensor:
    """Returns the weights `min((1 / N * 1 / P(i))^beta, max_weight)`, float64 `[B]`.

    Args:
      probabilities: The probability P(i) with which each example was drawn, float64
        `[B]`.
      number: The number N of examples that could be drawn, `[]` or `[B]`.
      importance_exponent: Beta, float64 `[]` or a number.
      max_weight: The largest weight.
    """
    expected = probabilities * tf.cast(number, tf.float64)
    return tf.minimum(tf.pow(expected, -importance_exponent), max_weight)


class TFPrioritizedReplayBuffer(ring_replay_buffer.RingReplayBuffer):
    """Stores batches of frames; samples windows in proportion to their priorities.

    A window of `num_steps` frames has a priority p, in practice the size of its TD
    error. It is drawn with the probability (section 3.3, equation 1)

        P(i) = p_i^alpha / sum_k p_k^alpha

    over all windows that lie within their environment's ring, so none joins the newest
    frame to the oldest. The weights (section 3.4)

        w_i = min((1 / N * 1 / P(i))^beta, max_weight)

    of the examples in the loss correct the bias of this sampling. N is the number of
    these windows. The paper divides the weights of a sample by their maximum instead.
    But the maximum belongs to the least likely example, so the mean weight, and with it
    the size of the updates, varies several-fold from sample to sample. A new frame gets
    the largest priority that any frame has had so far, so that every frame is likely to
    be sampled once (algorithm 1, line 6). As in the paper, this largest priority never
    falls; only `clear` resets it to 1. So after one priority of 1e30, nearly every draw
    takes a frame that has not been drawn since it was added. If errors can have any
    size, bound the priorities, for example with `tf.minimum(errors, 10.0)`.

    A window is identified by its first frame, for any `num_steps`. Windows are drawn
    independently, with replacement and without strata, so a large sample can be split
    into several samples of the same distribution.

    ```python
    experience, info = next(iterator)
    loss_info = agent.train(experience, weights=info.weights)
    replay_buffer.update_priorities(info.keys, tf.abs(loss_info.extra.td_error))
    ```

    One writer and any number of samplers may work at the same time; several writers,
    of frames or of priorities, must take turns.
    """

    def __init__(
        self,
        data_spec: types.NestedTensorSpec,
        batch_size: int,
        max_length: int = 1000,
        scope: str = "TFPrioritizedReplayBuffer",
        device: str | None = None,
        table_fn: Callable[..., Any] = table.PackedTable,
        dataset_drop_remainder: bool = False,
        dataset_window_shift: int | None = None,
        stateful_dataset: bool = False,
        *,
        priority_exponent: float = 0.6,
        importance_exponent: types.FloatOrSchedule = 0.4,
        epsilon: float = 1e-6,
        max_weight: float = 10.0,
        step: tf.Variable | None = None,
        seed: int | None = None,
        row_format: row_formats.RowFormat | None = None,
    ) -> None:
        """Creates the storage.

        Args:
          data_spec: A nest of `tf.TensorSpec`s of one frame, without batch and time.
          batch_size: The number of environments that are written together (`B`).
          max_length: The number of frames of each environment that are kept (`L`).
          scope: The prefix of the variables' names.
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
          priority_exponent: Alpha, the exponent of the priorities; 0 samples uniformly.
          importance_exponent: Beta, the degree to which the weights correct the bias; 1
            corrects it fully. A number, a tensor or variable, a callable without
            arguments that is evaluated for each sample, or a Keras schedule of `step`;
            the paper anneals from 0.4 to 1.
          epsilon: A number added to every updated priority, so that no priority is
            zero.
          max_weight: The largest weight of an example, so that an unlikely example does
            not dominate an update.
          step: The variable that a schedule given as `importance_exponent` follows,
            such as an agent's `train_step_counter`.
          seed: The seed of the sampling; None follows `tf.random.set_seed`.
          row_format: The conversion of frames to stored rows and back, such as
            `FrameStacking`; None stores frames unchanged.

        Raises:
          ValueError: If a size or `max_weight` is not positive, an exponent or
            `epsilon` is negative, a spec cannot be stored, or a schedule is given
            without `step`.
        """
        for name, value, remedy in (
            ("priority_exponent", priority_exponent, "0 samples uniformly"),
            ("epsilon", epsilon, "it keeps priorities above 0"),
            ("importance_exponent", importance_exponent, "0 corrects no bias"),
        ):
            number_checks.check_number(name, value, 0, remedy=remedy)
        number_checks.check_number(
            "max_weight",
            max_weight,
            0,
            excludes_low=True,
            remedy="a weight of 1 leaves the loss of an example as it is",
        )
        super().__init__(
            data_spec,
            batch_size,
            max_length,
            scope,
            device,
            table_fn,
            dataset_drop_remainder,
            dataset_window_shift,
            stateful_dataset,
            seed=seed,
            row_format=row_format,
        )
        self._alpha = float(priority_exponent)
        self._beta = schedules.follow("importance_exponent", importance_exponent, step)
        self._epsilon = float(epsilon)
        self._max_weight = float(max_weight)
        with self._placed(), tf.name_scope(scope):
            # The position of a window is its key. So the windows of all environments
            # that can be drawn now are one range of positions.
            self._tree = sum_tree.SumTree(self._batch_size * self._ring)
            self._max_priority = tf.Variable(
                1.0, dtype=tf.float64, trainable=False, name="max_priority"
            )

    @property
    def is_prioritized(self) -> bool:
        """Whether trainers set the priorities: always."""
        return True

    @property
    def priority_exponent(self) -> float:
        """The exponent of the priorities, alpha."""
        return self._alpha

    @property
    def epsilon(self) -> float:
        """The number added to every priority."""
        return self._epsilon

    @property
    def max_weight(self) -> float:
        """The largest importance weight."""
        return self._max_weight

    def importance_exponent(self) -> tf.Tensor:
        """Returns beta, the current exponent of the weights, float64 `[]`."""
        return tf.cast(schedules.current_value(self._beta), tf.float64)

    def priority_evenness(self) -> tf.Tensor:
        """Returns the share of the frames that count, float64 `[]`, in (0, 1].

        It is `(sum p)^2 / (N sum p^2)`, Kish's effective sample size as a share: 1 if
        all frames are as likely, and `1 / N` if one is always drawn. NaN without
        frames.
        """
        likely = self._tree.variables[0].read_value()
        number = tf.reduce_sum(tf.cast(likely > 0, tf.float64))
        squares = number * tf.reduce_sum(tf.square(likely))
        return tf.square(tf.reduce_sum(likely)) / squares

    def variables(self) -> list[tf.Variable]:
        """Returns storage, head, random state, tree and largest-priority variables."""
        return [*super().variables(), *self._tree.variables, self._max_priority]

    def update_priorities(self, keys: Any, priorities: Any) -> Any:
        """Sets the priorities of windows; returns the operation (None if eager).

        Windows whose first frame has been overwritten since they were drawn are left
        out; a window that is given twice gets the larger priority. Keys are invalid
        after `clear`.

        Args:
          keys: The windows' keys, `info.keys` of a sample, int64 `[N]`.
          priorities: Numbers of zero or more, in practice absolute TD errors: floats
            `[N]`. The buffer adds `epsilon`.

        Raises:
          ValueError: If the keys and priorities are not vectors of one length.
          tf.errors.InvalidArgumentError: If a priority is negative or not finite, or a
            key does not belong to this buffer. (XLA compiles the check away, and a
            loop on an accelerator leaves it out.)
        """
        keys, priorities = _checked_update(keys, priorities)
        with self._placed(), tf.name_scope("update_priorities"):
            head = self._last_id.read_value()
            ids = keys // self._batch_size
            checks = [
                _assert_priorities(priorities),
                accelerators.assert_true(
                    tf.reduce_all((keys >= 0) & (ids <= head)),
                    [
                        "keys: got some that no frame of the buffer has; expected "
                        "info.keys of a sample that was drawn since the last clear()."
                    ],
                ),
            ]
            with tf.control_dependencies(checks):
                held = ids > head - self._max_length
            priorities = priorities + self._epsilon
            written = self._tree.write(keys, tf.pow(priorities, self._alpha), held)
            largest = tf.reduce_max(tf.where(held, priorities, 0.0))
            noted = self._max_priority.assign(
                tf.maximum(self._max_priority, largest), read_value=False
            )
            return tf.group(written, noted)

    def get_priorities(self, keys: Any) -> tf.Tensor:
        """Returns the priorities of windows, raised to alpha, float64 like `keys`."""
        return self._tree.read(tf.cast(keys, tf.int64))

    def _enter(self, new_id: tf.Tensor) -> tf.Tensor:
        keys = new_id * self._batch_size + tf.range(self._batch_size, dtype=tf.int64)
        value = tf.pow(self._max_priority.read_value(), self._alpha)
        # The oldest frames leave the buffer. Their priorities become 0 before a range
        # begins after them.
        oldest = keys - self._max_length * self._batch_size
        return self._tree.write(
            tf.concat([keys, oldest], axis=0),
            tf.repeat(tf.stack([value, 0.0]), self._batch_size),
        )

    def _choose(
        self, seed: tf.Tensor, shape: list[int], first: tf.Tensor, count: tf.Tensor
    ) -> tuple[tf.Tensor, PrioritizedBufferInfo]:
        begin = first * self._batch_size
        number = count * self._batch_size
        keys, values, total = self._tree.draw(
            seeds.uniform(seed, shape, dtype=tf.float64), begin, begin + number
        )
        none = [
            f"{type(self).__name__}: the priorities of all windows that can be drawn "
            "are 0. Give the buffer an epsilon > 0, or one of them a priority."
        ]
        with tf.control_dependencies([accelerators.assert_true(total > 0, none)]):
            probabilities = values / total
        weights = importance_weights(
            probabilities, number, self.importance_exponent(), self._max_weight
        )
        return keys, PrioritizedBufferInfo(
            (), tf.cast(probabilities, tf.float32), keys, tf.cast(weights, tf.float32)
        )

    def _clear(self) -> None:
        # A frame's leaf is written before the frame can be drawn, so it need not be
        # emptied.
        super()._clear()
        self._max_priority.assign(1.0)


def _checked_update(keys: Any, priorities: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns keys as int64 `[N]` and priorities as float64 `[N]`, after a check."""
    keys = tf.cast(keys, tf.int64)
    priorities = tf.cast(priorities, tf.float64)
    if keys.shape.rank != 1 or not priorities.shape.is_compatible_with(keys.shape):
        raise ValueError(
            f"priorities: got shape {priorities.shape} for keys of shape {keys.shape}, "
            "expected two vectors of one length. Give one priority for each window; "
            "reduce TD errors over time, for instance by tf.reduce_max."
        )
    return keys, priorities


def _assert_priorities(priorities: tf.Tensor) -> Any:
    return accelerators.assert_true(
        tf.reduce_all((priorities >= 0) & tf.math.is_finite(priorities)),
        [
            "priorities: got one that is negative or not finite, expected numbers of "
            "0 or more. Give the size of the TD errors, tf.abs(td_error)."
        ],
    )
