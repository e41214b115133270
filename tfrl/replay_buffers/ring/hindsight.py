"""`Hindsight`: a buffer's row format that relabels goals when it samples."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

from tfrl.compilation import (
    accelerators,
    context,
    graph_calls,
    host_calls,
    python_threads,
)
from tfrl.environments import py_environment, tf_py_environment, wrappers
from tfrl.replay_buffers.ring import row_format
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import number_checks, seeds

# A search for an episode's end divides what is left by this number at each round.
_FANOUT = 16
_ACHIEVED, _DESIRED = "achieved_goal", "desired_goal"

RewardFn = Callable[[Any, Any], Any]


class HindsightRow(NamedTuple):
    """A row of a buffer that relabels goals.

    Attributes:
      step: The `Trajectory` as it was written.
      episode: How many episodes began before it in this environment, int64.
    """

    step: Any
    episode: Any


class Hindsight(row_format.RowFormat):
    """Replaces goals by goals that were reached later, in a part of what is sampled.

    This is Hindsight Experience Replay (Andrychowicz et al., 2017, arXiv:1707.01495)
    with its strategy "future": with the probability k / (k + 1), a sampled window gets
    the goal that a step after its first one reached, drawn uniformly from the rest of
    the episode, as far as the buffer holds it. All rewards in the window are computed
    again, so n-step returns are right. Nothing is taken from, or written into, another
    episode. Goals are relabelled in random samples alone; `gather_all` and passes in
    order return what was written.

    Observations are dictionaries with `achieved_goal` and `desired_goal`, as those of
    Gymnasium-Robotics, and the reward for a step is a function of the achieved goal
    after it and the desired one:

    ```python
    def reward(achieved_goal, desired_goal):
        distance = tf.norm(achieved_goal - desired_goal, axis=-1)
        return -tf.cast(distance > 0.05, tf.float32)

    replay_buffer = TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=1, row_format=Hindsight(reward)
    )
    ```

    `Hindsight.of(environment)` takes what the environment offers. Discounts stay as
    they were collected, unless a `GoalReplayEnvWrapper` rewrites them. The last frame
    of a window keeps its reward where the buffer has no frame after it; no agent reads
    that reward.
    """

    def __init__(
        self, reward_fn: RewardFn | GoalWrapperRelabeler, goals_per_step: int = 4
    ) -> None:
        """Creates the format.

        Args:
          reward_fn: A function of tensors, `(achieved_goal, desired_goal)` with goals
            `[N, *shape]`, that returns rewards `[N]`. Or a function of arrays in a
            `HostReward`, or a `GoalWrapperRelabeler`.
          goals_per_step: How many relabelled windows there are for each one with its
            own goal, k.

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
        self._relabel: Any = (
            reward_fn
            if isinstance(reward_fn, GoalWrapperRelabeler)
            else functools.partial(_with_goal, reward_fn)
        )
        self._has_goal_keys = not isinstance(reward_fn, GoalWrapperRelabeler)
        self._host = reward_fn if isinstance(reward_fn, _HostFunction) else None
        self._chance = goals_per_step / (goals_per_step + 1)
        # To know the reward of a window's first step, which is in the frame before.
        self.context_frames = 1

    @classmethod
    def of(cls, environment: Any, goals_per_step: int = 4) -> Hindsight:
        """Returns a format with the functions of an environment.

        - Of a `GoalReplayEnvWrapper`, these are its own two functions.
        - A native environment's `compute_reward(achieved_goal, desired_goal)` takes
          tensors and becomes part of the graph.
        - Another environment's `compute_reward(achieved_goal, desired_goal, info)` is
          called on the host with arrays `[N, ...]` and an empty `info`.

        Args:
          environment: A `PyEnvironment`, or an environment of tensors. Functions on
            the host are those of its first member, which must be in this process.
          goals_per_step: See the constructor.

        Raises:
          ValueError: If the environment has no such functions.
        """
        if not isinstance(environment, tf_py_environment.TFPyEnvironment) and not (
            isinstance(environment, py_environment.PyEnvironment)
        ):
            compute = getattr(environment, "compute_reward", None)
            if compute is not None:
                return cls(compute, goals_per_step)
        part: Any = getattr(environment, "pyenv", environment)
        while part is not None:
            if isinstance(part, wrappers.GoalReplayEnvWrapper):
                return cls(GoalWrapperRelabeler(part), goals_per_step)
            compute = getattr(part, "compute_reward", None)
            if compute is not None:
                return cls(HostReward(compute), goals_per_step)
            members = getattr(part, "envs", None)
            inner = getattr(part, "wrapped_env", lambda: None)
            part = members[0] if members else inner()
        raise ValueError(
            f"environment: got {environment!r}, expected a GoalReplayEnvWrapper or an "
            "environment with compute_reward, in this process; give Hindsight a "
            "function of the achieved and the desired goals."
        )

    @property
    def supports_xla(self) -> bool:
        """Whether XLA can compile `decode`: not if it cannot call Python."""
        return self._host is None or host_calls.obstacle() is None

    def reraise(self) -> contextlib.AbstractContextManager[None]:
        """Raises the exceptions of functions on the host as they are."""
        return contextlib.nullcontext() if self._host is None else self._host.reraise()

    def stored_spec(self, data_spec: Any) -> HindsightRow:
        """Returns the specs of a row: a frame and the number of its episode.

        Args:
          data_spec: The specs of a `Trajectory`, such as `agent.collect_data_spec`.

        Raises:
          TypeError: If they are the specs of something else.
          ValueError: If observations do not hold an achieved and a desired goal of one
            spec, or there is more than one reward.
        """
        if not isinstance(data_spec, trajectory.Trajectory):
            raise TypeError(
                f"data_spec: got a {type(data_spec).__name__}, expected a Trajectory, "
                "whose step_type tells where episodes start; give "
                "agent.collect_data_spec."
            )
        if self._has_goal_keys:
            _check_goals(data_spec.observation)
        if (
            not isinstance(data_spec.reward, tf.TensorSpec)
            or data_spec.reward.shape.rank
        ):
            raise ValueError(
                f"data_spec.reward: got {data_spec.reward}, expected one number; "
                "hindsight relabels no vectors of rewards."
            )
        return HindsightRow(data_spec, tf.TensorSpec([], tf.int64, "episode"))

    def encode(self, items: Any, new_id: tf.Tensor, previous: Any) -> HindsightRow:
        """Returns the rows of frames, with the numbers of their episodes."""
        step_type = tf.convert_to_tensor(items.step_type)
        begins = tf.cast(accelerators.equal(step_type, ts.StepType.FIRST), tf.int64)
        before = previous().episode
        return HindsightRow(
            items, tf.where(new_id == 0, tf.zeros_like(before), before + begins)
        )

    def decode(self, window: row_format.Window) -> Any:
        """Returns the frames of a window, some of them with goals reached later."""
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
        # Where nothing is chosen, whatever is read there is not used.
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


class _HostFunction:
    """Calls a function of arrays from graphs, compiled or not."""

    def __init__(self) -> None:
        self._channel = host_calls.Channel()

    @contextlib.contextmanager
    def reraise(self) -> Any:
        """Raises the function's own exception instead of a `tf.errors.OpError`."""
        with self._channel.raising():
            yield

    @tf.autograph.experimental.do_not_convert
    def _call(
        self,
        function: Callable[..., Sequence[Any]],
        inputs: Sequence[tf.Tensor],
        specs: Sequence[tf.TensorSpec],
    ) -> list[tf.Tensor]:
        """Calls `function` in the graph; returns its results, one for each spec."""

        def call(*arrays: np.ndarray) -> list[np.ndarray]:
            # Copies, because TensorFlow uses the memory of its arrays again.
            results = function(*(np.array(array) for array in arrays))
            return [
                np.array(np.broadcast_to(result, spec.shape), spec.dtype.as_numpy_dtype)
                for result, spec in zip(results, specs, strict=True)
            ]

        if context.in_xla_graph():
            return host_calls.host_call(
                call, inputs, specs, self._channel, name="hindsight"
            )

        def kept(*arrays: np.ndarray) -> list[np.ndarray]:
            python_threads.keep_thread_state()
            try:
                return call(*arrays)
            except BaseException as error:
                self._channel.keep(error)
                raise

        dtypes = [spec.dtype for spec in specs]
        results = graph_calls.numpy_function(kept, list(inputs), dtypes, "hindsight")
        for result, spec in zip(results, specs, strict=True):
            result.set_shape(spec.shape)
        return results


class HostReward(_HostFunction):
    """A reward function of arrays, such as Gymnasium-Robotics' `compute_reward`.

    It is called on the host, once for a batch, with goals `[N, ...]` and an empty
    `info`; it returns the rewards `[N]`. The episodes' own infos are not stored.
    """

    def __init__(self, compute_reward: Callable[[Any, Any, Any], Any]) -> None:
        """Wraps `compute_reward(achieved_goal, desired_goal, info)`."""
        super().__init__()
        self._compute = compute_reward

    def __call__(self, achieved_goal: tf.Tensor, desired_goal: tf.Tensor) -> tf.Tensor:
        """Returns the rewards for goals `[N, *shape]`, float32 `[N]`."""

        def compute(achieved: np.ndarray, desired: np.ndarray) -> list[Any]:
            return [self._compute(achieved, desired, {})]

        spec = tf.TensorSpec(desired_goal.shape[:1], tf.float32)
        return self._call(compute, [achieved_goal, desired_goal], [spec])[0]


class GoalWrapperRelabeler(_HostFunction):
    """Relabels by the two functions of a `GoalReplayEnvWrapper`, on the host.

    They are given the steps as agents see them, with the wrapper's observations:
    batches `[N, ...]` if the environment is batched, else one after the other.
    """

    def __init__(self, environment: wrappers.GoalReplayEnvWrapper) -> None:
        """Takes the functions of `environment`."""
        super().__init__()
        self._env = environment

    def __call__(
        self, reached: ts.TimeStep, steps: ts.TimeStep, following: ts.TimeStep
    ) -> tuple[Any, tf.Tensor, tf.Tensor]:
        """Returns the observations of `steps`, the rewards and the discounts.

        Args:
          reached: The steps that reached the goals, tensors that can be broadcast to
            the shape of the others, such as `[B, 1, ...]`.
          steps: Steps `[B, T, ...]` of the same episodes.
          following: The steps after them, `[B, T, ...]`; the rewards and discounts are
            theirs.
        """
        rank = steps.step_type.shape.rank
        # The graph keeps the function, which must not keep the graph's tensors.
        structure = tf.nest.map_structure(lambda _: None, steps)
        size = len(tf.nest.flatten(steps))

        def batch(arrays: Sequence[np.ndarray], shapes: Sequence[Any]) -> Any:
            leaves = [
                np.broadcast_to(array, shape).reshape(-1, *shape[rank:])
                for array, shape in zip(arrays, shapes, strict=True)
            ]
            return tree.unflatten_as(structure, leaves)

        def relabel(*arrays: np.ndarray) -> list[Any]:
            shapes = [array.shape for array in arrays[size : 2 * size]]
            batches = [batch(arrays[i * size :][:size], shapes) for i in range(3)]
            outer = shapes[0][:rank]
            return [
                np.reshape(leaf, (*outer, *np.shape(leaf)[1:]))
                for leaf in tree.flatten(self._relabel(*batches))
            ]

        specs = [
            tf.TensorSpec(x.shape, x.dtype)
            for x in (
                *tf.nest.flatten(steps.observation),
                following.reward,
                following.discount,
            )
        ]
        inputs = tf.nest.flatten((reached, steps, following))
        *observation, reward, discount = self._call(relabel, inputs, specs)
        observation = tf.nest.pack_sequence_as(steps.observation, observation)
        return observation, reward, discount

    def _relabel(
        self, reached: ts.TimeStep, steps: ts.TimeStep, following: ts.TimeStep
    ) -> tuple[Any, Any, Any]:
        """Returns observations, rewards and discounts, `[N, ...]` like the steps."""
        find = self._env.get_goal_from_trajectory
        rewrite = self._env.get_trajectory_with_goal
        if self._env.batched:
            goal = find(reached)
            after = rewrite(following, goal)
            return rewrite(steps, goal).observation, after.reward, after.discount
        rows = []
        for i in range(len(steps.step_type)):
            parts = [
                tree.map_structure(lambda x, i=i: x[i], part)
                for part in (reached, steps, following)
            ]
            goal = find(parts[0])
            after = rewrite(parts[2], goal)
            rows.append(
                (rewrite(parts[1], goal).observation, after.reward, after.discount)
            )
        return tree.map_structure(lambda *leaves: np.stack(leaves), *rows)


def _with_goal(
    reward_fn: RewardFn,
    reached: ts.TimeStep,
    steps: ts.TimeStep,
    following: ts.TimeStep,
) -> tuple[Any, tf.Tensor, tf.Tensor]:
    """Writes the achieved goals of `reached` into dictionaries of observations."""
    desired = steps.observation[_DESIRED]
    goal = tf.broadcast_to(reached.observation[_ACHIEVED], tf.shape(desired))
    goal = tf.ensure_shape(goal, desired.shape)
    rank = following.reward.shape.rank
    size = desired.shape[:rank].num_elements()
    batches = [
        tf.reshape(goals, [-1 if size is None else size, *desired.shape[rank:]])
        for goals in (following.observation[_ACHIEVED], goal)
    ]
    reward = tf.convert_to_tensor(reward_fn(*batches))
    if not reward.shape.is_compatible_with([size]):
        raise ValueError(
            f"reward_fn: got rewards of shape {reward.shape} for goals of shape "
            f"{batches[0].shape}, expected [{size}]; return one number for each goal, "
            "such as by tf.norm(achieved_goal - desired_goal, axis=-1)."
        )
    reward = tf.cast(tf.reshape(reward, tf.shape(following.reward)), tf.float32)
    return {**steps.observation, _DESIRED: goal}, reward, following.discount


def _check_goals(observation_spec: Any) -> None:
    keys = sorted(observation_spec) if isinstance(observation_spec, dict) else None
    if keys is None or not {_ACHIEVED, _DESIRED} <= set(keys):
        raise ValueError(
            f"data_spec.observation: got {keys or observation_spec}, expected a "
            f"dictionary with {_ACHIEVED!r} and {_DESIRED!r}; wrap the environment in "
            "a GoalReplayEnvWrapper, and use Hindsight.of(environment)."
        )
    achieved, desired = observation_spec[_ACHIEVED], observation_spec[_DESIRED]
    same = isinstance(achieved, tf.TensorSpec) and isinstance(desired, tf.TensorSpec)
    if not same or (achieved.shape, achieved.dtype) != (desired.shape, desired.dtype):
        raise ValueError(
            f"data_spec.observation: got {_ACHIEVED!r} of {achieved} and {_DESIRED!r} "
            f"of {desired}, expected two tensors of one shape and dtype; wrap the "
            "environment in a GoalReplayEnvWrapper, which may convert one to the other."
        )


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
