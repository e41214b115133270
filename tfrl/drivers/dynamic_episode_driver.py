"""Runs a TF policy in a TF environment for a number of episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.drivers import driver, tf_loop
from tfrl.trajectories import trajectory
from tfrl.typing import types


class DynamicEpisodeDriver(tf_loop.LoopDriver):
    """Runs at least `num_episodes` episodes in one `tf.while_loop`.

    An episode counts when its boundary (the reset after it) has been observed, so a run
    ends one step after a LAST step. Episodes are counted over the whole batch: with
    more than one environment, the first episodes to end are short ones, which biases
    the collected data; `tfrl.eval.Evaluator` avoids that bias. See
    `tfrl.drivers.tf_loop` for how an eager call runs.
    """

    def __init__(
        self,
        env: types.TFEnv,
        policy: types.TFPolicy,
        observers: Sequence[driver.Observer] | None = None,
        transition_observers: Sequence[driver.Observer] | None = None,
        num_episodes: int | tf.Tensor | tf.Variable = 1,
        *,
        use_function: bool = True,
    ) -> None:
        """Creates a driver; for the observers see `Driver`.

        With `use_function=False`, an eager call never traces the loop.

        Raises:
          TypeError: If `env` is a Python environment.
        """
        super().__init__(env, policy, observers, transition_observers, use_function)
        self._num_episodes = num_episodes

    def run(
        self,
        time_step: Any = None,
        policy_state: Any = None,
        num_episodes: Any = None,
        maximum_iterations: Any = None,
        *,
        seed: Any = None,
    ) -> tuple[types.TensorTimeStep, Any]:
        """Runs the episodes.

        Args:
          time_step: The first time step, `[B, ...]`; None resets the environment.
          policy_state: The policy's state at `time_step`; None takes the policy's
            initial state.
          num_episodes: The number of episodes; None takes the constructor's number.
          maximum_iterations: The largest number of batched steps; None sets no limit.
          seed: An integer or int `[2]` that decides the policy's random choices; with
            None they come from the policy's own generator.

        Returns:
          The final time step and policy state, to continue from.
        """
        if time_step is None:
            time_step = self.env.reset()
        limit = self._num_episodes if num_episodes is None else num_episodes
        return self.run_loop(time_step, policy_state, limit, maximum_iterations, seed)

    def _count(self, traj: trajectory.Trajectory) -> tf.Tensor:
        return tf_loop.count_episodes(self.env, traj)
