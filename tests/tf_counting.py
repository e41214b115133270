"""A `tfrl.testing.CountingEnvironment` that is written in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.environments import tf_environment
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts


class TFCountingEnvironment(tf_environment.TFEnvironment):
    """A batched `CountingEnvironment` that is written in TensorFlow.

    The observations, int32 `[B]`, are the numbers of steps in the members' current
    episodes.
    """

    def __init__(
        self,
        lengths: Sequence[int] | Sequence[Sequence[int]],
        *,
        action_spec: Any = None,
        reward: Callable[[tf.Tensor, Any], tf.Tensor] | None = None,
    ):
        """Makes a member for each element of `lengths`.

        Args:
          lengths: `lengths[i]` is the length of the episodes of member `i`: one number
            for all episodes, or a sequence of lengths that is repeated.
          action_spec: A nest of tensor specs; None for one int32 number, 0 or 1.
          reward: A function from the counts `[B]` and the actions to the rewards `[B]`;
            None for the counts.
        """
        table = np.array([np.atleast_1d(each) for each in lengths], np.int32)
        if action_spec is None:
            action_spec = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1, "action")
        super().__init__(
            ts.time_step_spec(tf.TensorSpec([], tf.int32, "count")),
            action_spec,
            batch_size=len(table),
        )
        self._lengths = tf.constant(table)
        self._reward_of = reward or (lambda count, action: count)
        self._count = tf.Variable(tf.zeros([len(table)], tf.int32))
        self._episode = tf.Variable(tf.zeros([len(table)], tf.int32))
        self._reward = tf.Variable(tf.zeros([len(table)]))
        self.num_resets = tf.Variable(0)

    def _current_time_step(self) -> ts.TimeStep:
        count = tf.identity(self._count)
        last = count == self._length()
        step_type = tf.where(last, ts.StepType.LAST, ts.StepType.MID)
        return ts.TimeStep(
            tf.where(count == 0, ts.StepType.FIRST, step_type),
            tf.identity(self._reward),
            tf.where(last, 0.0, 1.0),
            count,
        )

    def _length(self) -> tf.Tensor:
        column = self._episode % self._lengths.shape[1]
        return tf.gather(self._lengths, column, axis=1, batch_dims=1)

    def _reset(self) -> ts.TimeStep:
        self.num_resets.assign_add(1)
        for variable in (self._count, self._episode, self._reward):
            variable.assign(tf.zeros_like(variable))
        return self._current_time_step()

    def _step(self, action: Any) -> ts.TimeStep:
        over = self._count == self._length()
        self._episode.assign_add(tf.cast(over, tf.int32))
        count = tf.where(over, 0, self._count + 1)
        reward = tf.cast(self._reward_of(count, action), tf.float32)
        self._count.assign(count)
        self._reward.assign(tf.where(over, 0.0, reward))
        return self._current_time_step()
