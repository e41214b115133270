"""Runs a TF policy in a TF environment for a number of steps or episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.drivers import driver, tf_loop
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.typing import types


class TFDriver(tf_loop.LoopDriver):
    """Steps a `TFEnvironment` until a number of steps or episodes is reached.

    The counterpart of `PyDriver`. Steps and episodes are counted over the whole batch;
    an episode counts when its boundary (the reset after it) has been observed. See
    `tfrl.drivers.tf_loop` for how an eager call runs.
    """

    def __init__(
        self,
        env: types.TFEnv,
        policy: types.TFPolicy,
        observers: Sequence[driver.Observer],
        transition_observers: Sequence[driver.Observer] | None = None,
        max_steps: int | None = None,
        max_episodes: int | None = None,
        disable_tf_function: bool = False,
    ) -> None:
        """Creates a driver whose `run` ends at the first limit that is reached.

        Args:
          env: A `TFEnvironment`.
          policy: A `TFPolicy`.
          observers: See `Driver`.
          transition_observers: See `Driver`.
          max_steps: The number of environment steps in a run, without boundaries.
          max_episodes: The number of episodes in a run.
          disable_tf_function: Whether to step eagerly always.

        Raises:
          TypeError: If `env` is a Python environment.
          ValueError: If neither limit is above 0.
        """
        driver.check_limits(max_steps, max_episodes)
        super().__init__(
            env, policy, observers, transition_observers, not disable_tf_function
        )
        # Subclasses with a `run` of their own read these, as in TF-Agents.
        self._max_steps = max_steps or tf.int32.max
        self._max_episodes = max_episodes or tf.int32.max

    def run(
        self, time_step: ts.TimeStep, policy_state: Any = (), *, seed: Any = None
    ) -> tuple[types.TensorTimeStep, Any]:
        """Runs the policy from `time_step` on.

        Args:
          time_step: The first time step, `[B, ...]`.
          policy_state: The policy's state at `time_step`.
          seed: An integer or int `[2]` that decides the policy's random choices; with
            None they come from the policy's own generator.

        Returns:
          The final time step and policy state, to continue from.
        """
        limits = [self._max_steps, self._max_episodes]
        return self.run_loop(time_step, policy_state, limits, seed=seed)

    def _count(self, traj: trajectory.Trajectory) -> list[tf.Tensor]:
        return [tf_loop.count_steps(traj), tf_loop.count_episodes(self.env, traj)]
