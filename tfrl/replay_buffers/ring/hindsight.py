"""`Hindsight`, a buffer's row format that relabels goals when it samples."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tfrl.compilation import accelerators
from tfrl.compilation.python_calls import host_calls
from tfrl.replay_buffers.ring import relabelers, row_format
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds

# A search for an episode's end divides the remaining range by this number at each
# round.
_FANOUT = 16


class HindsightRow(NamedTuple):
    """A row of a buffer that relabels goals.

    Attributes:
      step: The `Trajectory` as it was written.
      episode: The number of earlier episodes in this environment, int64.
    """

    step: Any
    episode: Any


class Hindsight(row_format.RowFormat):
    """Replaces goals by goals that were reached later, in a part of the samples.

    This is Hindsight Experience Replay (Andrychowicz et al., 2017, arXiv:1707.01495)
    with its strategy "future": with the probability k / (k + 1), a sampled window gets
    the goal that a step after its first one reached, drawn uniformly from the rest of
    the episode, as far as the buffer holds the episode. All rewards in the window are
    computed again, so n-step returns are right. Nothing is taken from, or written into,
    another episode. Goals are relabelled only in random samples; `gather_all` and
    passes in order return the original goals.

    Observations are dictionaries with `achieved_goal` and `desired_goal`, as in
    Gymnasium-Robotics, and the reward for a step is a function of the desired goal and
    of the goal achieved after the step:

    ```python
    def reward(achieved_goal, desired_goal):
        distance = tf.norm(achieved_goal - desired_goal, axis=-1)
        return -tf.cast(distance > 0.05, tf.float32)

    replay_buffer = TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=1, row_format=Hindsight(reward)
    )
    ```

    `Hindsight.of(environment)` takes the functions of the environment. Discounts stay
    as they were collected, unless a `GoalReplayEnvWrapper` rewrites them. The last
    frame of a window keeps its reward where the buffer has no frame after it; no agent
    reads that reward.
    """

    def __init__(
        self,
        reward_fn: relabelers.RewardFn | relabelers.GoalWrapperRelabeler,
        goals_per_step: int = 4,
    ) -> None:
        """Creates the format.

        Args:
          reward_fn: A function of tensors, `(achieved_goal, desired_goal)` with goals
            `[N, *shape]`, that returns rewards `[N]`. Or a `HostReward`, which holds a
            function of arrays, or a `GoalWrapperRelabeler`.
          goals_per_step: The number k of relabelled windows for each window with its
            own goal.

        Raises:
          TypeError: If `reward_fn` cannot be called, or `goals_per_step` is not an
            integer.
          ValueError: If `goals_per_step` is not positive.
        """
        number_checks.check_integer(
            "goals_per_step",
            goals_per_step,
            1,
            remedy="leave row_format out to relabel nothing",
        )
        if not callable(reward_fn):
            raise TypeError(
                f"reward_fn: got {reward_fn!r}, expected a function of the achieved "
                "and the desired goals; use Hindsight.of(environment) to take the "
                "environment's."
            )
        self._relabel: relabelers.GoalRelabeler | relabelers.GoalWrapperRelabeler = (
            reward_fn
            if isinstance(reward_fn, relabelers.GoalWrapperRelabeler)
            else relabelers.GoalRelabeler(reward_fn)
        )
        # The channel of the calls on the host, if there are any.
        self._channel: host_calls.CallChannel | None = getattr(
            reward_fn, "channel", None
        )
        self.calls_python = self._channel is not None
        self._chance = goals_per_step / (goals_per_step + 1)
        # The reward of a window's first step is in the frame before the window.
        self.context_frames = 1

    @classmethod
    def of(cls, environment: Any, goals_per_step: int = 4) -> Hindsight:
        """Returns a format with the functions of an environment.

        - A `GoalReplayEnvWrapper` gives its own two functions.
        - A native environment's `compute_reward(achieved_goal, desired_goal)` takes
          tensors and becomes part of the graph.
        - Another environment's `compute_reward(achieved_goal, desired_goal, info)` is
          called on the host with arrays `[N, ...]` and an empty `info`.

        Args:
          environment: A `PyEnvironment`, or an environment of tensors. Functions on the
            host come from its first member, which must be in this process.
          goals_per_step: See the constructor.

        Raises:
          ValueError: If the environment has no such functions.
        """
        return cls(relabelers.of_environment(environment), goals_per_step)

    def reraise(self) -> contextlib.AbstractContextManager[None]:
        """Raises the exceptions of functions on the host as they are."""
        if self._channel is None:
            return contextlib.nullcontext()
        return self._channel.raising()

    def stored_spec(self, data_spec: Any) -> HindsightRow:
        """Returns the specs of a row: a frame and the number of its episode.

        Args:
          data_spec: The specs of a `Trajectory`, such as `agent.collect_data_spec`.

        Raises:
          TypeError: If `data_spec` is not a `Trajectory`.
          ValueError: If observations do not hold an achieved and a desired goal of one
            spec, or there is more than one reward.
        """
        if not isinstance(data_spec, trajectory.Trajectory):
            raise TypeError(
                f"data_spec: got a {type(data_spec).__name__}, expected a Trajectory, "
                "whose step_type tells where episodes start; give "
                "agent.collect_data_spec."
            )
        self._relabel.check(data_spec.observation)
        if (
            not isinstance(data_spec.reward, tf.TensorSpec)
            or data_spec.reward.shape.rank
        ):
            raise ValueError(
                f"data_spec.reward: got {data_spec.reward}, expected one number; "
                "hindsight relabels no vectors of rewards."
            )
        return HindsightRow(data_spec, tf.TensorSpec([], tf.int64, "episode"))

    def check_collected(self, gather_all: Callable[[], Any]) -> None:
        """Compares the function's rewards with those of the first frames.

        Raises:
          ValueError: If more than 1 in 50 differ.
        """
        with self.reraise():
            self._relabel.check_collected(gather_all())

    def encode(self, items: Any, new_id: tf.Tensor, previous: Any) -> HindsightRow:
        """Returns the rows of frames, with the numbers of their episodes."""
        step_type = tf.convert_to_tensor(items.step_type)
        begins = tf.cast(accelerators.equal(step_type, ts.StepType.FIRST), tf.int64)
        before = previous().episode
        return HindsightRow(
            items, tf.where(new_id == 0, tf.zeros_like(before), before + begins)
        )

    def decode(self, window: row_format.Window) -> Any:
        """Returns the frames of a window, some with goals that were reached later."""
        rows = window.read(window.ids)
        if window.seed is None:
            return rows.step
        first = window.first
        episode = window.read(first).episode
        span = self._last_of_episode(window, episode) - first
        chances, places = seeds.split_seed(window.seed, 2)
        later = seeds.uniform(places, first.shape, dtype=tf.float64)
        later = tf.cast(later * tf.cast(span, tf.float64), tf.int64)
        later = 1 + tf.minimum(later, tf.maximum(span - 1, 0))
        chosen = seeds.uniform(chances, first.shape) < self._chance
        chosen &= (span > 0) & (rows.episode == episode)
        # Where nothing is chosen, the values read are not used.
        reached = tf.where(span > 0, first + later, first)
        after = window.read(tf.minimum(window.ids + 1, window.newest))
        has_next = (window.ids < window.newest) & (after.episode == rows.episode)
        observation, reward, discount = self._relabel(
            _time_step(window.read(reached).step, window.read(reached - 1).step),
            _time_step(rows.step, window.read(window.ids - 1).step),
            _time_step(after.step, rows.step),
        )
        step = rows.step
        return step._replace(
            observation=_choose(chosen, observation, step.observation),
            reward=_choose(chosen & has_next, reward, step.reward),
            discount=_choose(chosen & has_next, discount, step.discount),
        )

    def _last_of_episode(
        self, window: row_format.Window, episode: tf.Tensor
    ) -> tf.Tensor:
        """Returns the number of the newest frame of the episodes of `window.first`."""
        start, left = window.first, window.max_length
        part = tf.range(1, _FANOUT, dtype=tf.int64)
        while left > 1:  # The result is one of the `left` numbers from `start` on.
            left = -(-left // _FANOUT)
            at = tf.expand_dims(start, -1) + left * part
            row = window.read(tf.minimum(at, window.newest))
            same = row.episode == tf.expand_dims(episode, -1)
            same &= at <= window.newest
            start += left * tf.reduce_sum(tf.cast(same, tf.int64), -1)
        return start


def _time_step(step: Any, before: Any) -> ts.TimeStep:
    """Returns the time steps of frames; `before` are the frames before them."""
    is_first = accelerators.equal(step.step_type, ts.StepType.FIRST)
    return ts.TimeStep(
        step_type=step.step_type,
        reward=tf.where(is_first, tf.zeros_like(before.reward), before.reward),
        discount=tf.where(is_first, tf.ones_like(before.discount), before.discount),
        observation=step.observation,
    )


def _choose(mask: tf.Tensor, new: Any, old: Any) -> Any:
    """Returns a nest with the leaves of `new` where `mask`, `[...]`, else of `old`."""

    def choose(one: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
        more = other.shape.rank - mask.shape.rank
        return tf.where(mask[(..., *[tf.newaxis] * more)], one, other)

    flat = map(choose, tf.nest.flatten(new), tf.nest.flatten(old))
    return tf.nest.pack_sequence_as(old, list(flat))
