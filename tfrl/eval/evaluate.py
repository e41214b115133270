"""Evaluation of a policy without bias towards short episodes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from tfrl.environments import py_environment
from tfrl.metrics import episode_sums
from tfrl.utils import seeds

if TYPE_CHECKING:
    from tfrl.typing import types


@dataclasses.dataclass(frozen=True)
class EvaluationResult:
    """The returns and lengths of an evaluation's episodes, ordered by environment.

    Attributes:
      returns: Undiscounted returns, float32 `[num_episodes]`; the numbers of a vector
        reward or of a nest of rewards are summed.
      lengths: Environment steps, int64 `[num_episodes]`.
    """

    returns: np.ndarray
    lengths: np.ndarray

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(np.mean(self.returns, dtype=np.float64))

    @property
    def std(self) -> float:
        """The population standard deviation of the returns."""
        return float(np.std(self.returns, dtype=np.float64))

    @property
    def median(self) -> float:
        """The median return."""
        return float(np.median(self.returns))


class Evaluator:
    """Runs a policy for `num_episodes` episodes in a batched environment.

    Every environment of the batch contributes the same number of its first episodes
    (one more or less if the batch does not divide `num_episodes`), however long they
    take. Taking the first `num_episodes` episodes that end, as drivers do, would favour
    short episodes. The loop is one tf.function, traced at the first run.

    The policy is used unchanged: pass a greedy policy for a greedy evaluation. Its
    random choices depend on `seed` alone and are the same in every run. Give the
    evaluator an environment of its own: a run resets it at the start and leaves it in
    the middle of an episode. The evaluator does not seed the environment; seed it
    before each run for equal starts.
    """

    def __init__(
        self,
        environment: types.TFEnv,
        policy: Any,
        num_episodes: int,
        seed: int | tf.Tensor | None = None,
    ) -> None:
        """Creates an evaluator.

        Args:
          environment: A `TFEnvironment`.
          policy: A `TFPolicy`, or a policy that was loaded from a SavedModel.
          num_episodes: The number of episodes in a run.
          seed: The seed of the policy's random choices, an integer or int `[2]`; None
            draws a seed now.

        Raises:
          TypeError: If `environment` is a Python environment.
          ValueError: If `num_episodes` is below 1.
        """
        if isinstance(environment, py_environment.PyEnvironment):
            raise TypeError(
                f"environment: got {type(environment).__name__}, a Python environment, "
                "but Evaluator steps a TFEnvironment; wrap it in "
                "tfrl.environments.TFPyEnvironment."
            )
        if num_episodes < 1:
            raise ValueError(
                f"num_episodes: got {num_episodes}, but an evaluation has at least one "
                "episode; pass a number of 1 or more."
            )
        self._environment = environment
        self._policy = policy
        each, more = divmod(num_episodes, environment.batch_size)
        # How many episodes each environment contributes, [B].
        self._quota = each + (np.arange(environment.batch_size) < more)
        if seed is None:
            seed = seeds.next_seed(seeds.make_generator())
        self._seed = seeds.as_seed(seed)
        self._evaluate = tf.function(self._loop, autograph=False)

    def run(self) -> EvaluationResult:
        """Runs the episodes with the policy's current variables."""
        with self._environment.reraise():
            returns, lengths = self._evaluate(self._seed)
        wanted = np.arange(self._quota.max()) < self._quota[:, np.newaxis]
        return EvaluationResult(returns.numpy()[wanted], lengths.numpy()[wanted])

    __call__ = run

    def _loop(self, seed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the returns and lengths of the first episodes, `[B, max(quota)]`."""
        batch_size, slots = len(self._quota), int(self._quota.max())
        quota = tf.constant(self._quota, tf.int32)

        def body(
            step: tf.Tensor,
            time_step: Any,
            policy_state: Any,
            sums: tuple[tf.Tensor, tf.Tensor],
            ended: tf.Tensor,
            episodes: tuple[tf.Tensor, tf.Tensor],
        ) -> tuple:
            action_step = self._policy.action(
                time_step,
                policy_state,
                # A saved policy takes a seed of this dtype.
                seed=tf.cast(
                    tf.random.fold_in(seed, step, alg=seeds.ALGORITHM), tf.int64
                ),
            )
            next_time_step = self._environment.step(action_step.action)
            reward = episode_sums.total_reward(next_time_step.reward, tf.float32)
            increments = reward, tf.ones_like(ended)
            # A boundary adds to a sum that is stored already and starts again next.
            sums = tf.nest.map_structure(
                lambda total, increment: (
                    increment
                    + tf.where(time_step.is_first(), tf.zeros_like(total), total)
                ),
                sums,
                increments,
            )
            ends = next_time_step.is_last() & ~time_step.is_last()
            # The row of an environment that has ended `slots` episodes is all False.
            here = tf.one_hot(ended, slots, on_value=True, off_value=False)
            here = tf.logical_and(here, ends[:, tf.newaxis])
            episodes = tf.nest.map_structure(
                lambda stored, total: tf.where(here, total[:, tf.newaxis], stored),
                episodes,
                sums,
            )
            ended += tf.cast(ends, tf.int32)
            return step + 1, next_time_step, action_step.state, sums, ended, episodes

        def zeros(*shape: int) -> tuple[tf.Tensor, tf.Tensor]:
            return tf.zeros(shape, tf.float32), tf.zeros(shape, tf.int32)

        returns, lengths = tf.while_loop(
            lambda _, __, ___, ____, ended, _____: tf.reduce_any(ended < quota),
            body,
            (
                tf.zeros([], tf.int32),
                self._environment.reset(),
                self._policy.get_initial_state(batch_size),
                zeros(batch_size),
                tf.zeros([batch_size], tf.int32),
                zeros(batch_size, slots),
            ),
            parallel_iterations=1,
        )[-1]
        return returns, tf.cast(lengths, tf.int64)
