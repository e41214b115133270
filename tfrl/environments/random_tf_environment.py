"""`RandomTFEnvironment`: random observations from TensorFlow, for tests."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.compilation import stored_values, trace_counts
from tfrl.environments import tf_environment
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils import nest_utils, number_checks
from tfrl.utils.random_numbers import seeds


class RandomTFEnvironment(tf_environment.TFEnvironment):
    """Draws observations and rewards from their specs, whatever the action.

    Each member terminates at random and returns its next FIRST step after that. There
    is no Python in a step, so a loop around it can be compiled.
    """

    def __init__(
        self,
        time_step_spec: Any,
        action_spec: Any,
        batch_size: int = 1,
        episode_end_probability: float = 0.1,
        *,
        seed: int | None = None,
    ):
        """Makes the environment.

        Args:
          time_step_spec: The `TimeStep` of nests of tensor specs that `step` follows.
            Rewards without bounds are drawn from the whole range of their dtype.
          action_spec: The nest of tensor specs of the actions.
          batch_size: The number of members.
          episode_end_probability: The probability that a step ends the episode.
          seed: The seed of the random numbers; None follows `tf.random.set_seed`.

        Raises:
          ValueError: If the probability is not in [0, 1], or `batch_size` is not
            positive.
        """
        super().__init__(time_step_spec, action_spec, batch_size)
        number_checks.check_number(
            "episode_end_probability",
            episode_end_probability,
            0,
            1,
            remedy="it is a probability",
        )
        number_checks.check_sizes(batch_size=batch_size)
        self._end_probability = episode_end_probability
        self._has_seed = seed is not None
        self._generator = seeds.make_generator(seed)
        self._stored = stored_values.StoredNest(
            tensor_spec.add_outer_dim(time_step_spec, batch_size)
        )
        self._started = tf.Variable(False)
        # Each is traced once, and called as one operation in a larger graph.
        self._reset_function = tf.function(
            trace_counts.of_one_object(self._draw_reset), autograph=False
        )
        self._step_function = tf.function(
            trace_counts.of_one_object(self._draw_step), autograph=False
        )

    @property
    def is_seeded(self) -> bool:
        """Whether a seed was given."""
        return self._has_seed

    def get_state(self) -> Any:
        """Returns the state as NumPy arrays. This cannot be called in a graph."""
        return {
            "time_step": [x.numpy() for x in tf.nest.flatten(self._stored.read())],
            "started": bool(self._started),
            "generator": self._generator.state.numpy(),
        }

    def set_state(self, state: Any) -> None:
        """Restores a state that `get_state` returned."""
        self._stored.assign(state["time_step"])
        self._started.assign(state["started"])
        self._generator.state.assign(state["generator"])

    def _current_time_step(self) -> ts.TimeStep:
        return tf.cond(self._started, self._stored.read, self._reset)

    def _reset(self) -> ts.TimeStep:
        return self._reset_function()

    def _step(self, action: Any) -> ts.TimeStep:
        tf_environment.flatten(action, self._action_spec, self._batch_size)
        return self._step_function()

    def _draw_reset(self) -> ts.TimeStep:
        return self._draw(tf.ones([self._batch_size], tf.bool))

    def _draw_step(self) -> ts.TimeStep:
        ended = self._stored.read().is_last()
        return self._draw(tf.logical_or(ended, tf.logical_not(self._started)))

    def _draw(self, first: tf.Tensor) -> ts.TimeStep:
        """Draws the next time step; `first`, `[B]`, marks the starts of episodes."""
        spec = self._time_step_spec
        observation_seed, reward_seed, end_seed = seeds.split_seed(
            seeds.next_seed(self._generator), 3
        )
        outer = (self._batch_size,)
        ends = seeds.uniform(end_seed, outer) < self._end_probability
        last = tf.logical_and(ends, tf.logical_not(first))
        step_type = tf.where(last, ts.StepType.LAST, ts.StepType.MID)
        reward = tensor_spec.sample_spec_nest(spec.reward, reward_seed, outer)
        time_step = ts.TimeStep(
            step_type=tf.where(first, ts.StepType.FIRST, step_type),
            reward=nest_utils.where(
                first, tf.nest.map_structure(tf.zeros_like, reward), reward
            ),
            discount=tf.cast(tf.logical_not(last), spec.discount.dtype),
            observation=tensor_spec.sample_spec_nest(
                spec.observation, observation_seed, outer
            ),
        )
        self._started.assign(True)
        self._stored.assign(time_step)
        return time_step
