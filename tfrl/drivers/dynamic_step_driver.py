"""Runs a TF policy in a TF environment for a number of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.drivers import driver, tf_loop
from tfrl.trajectories import trajectory
from tfrl.typing import types


class DynamicStepDriver(tf_loop.LoopDriver):
    """Takes at least `num_steps` environment steps in one `tf.while_loop`.

    Steps are counted over the whole batch, so a batched environment may take up to
    `batch_size - 1` more. A boundary (the reset after an episode) is observed, not
    counted. See `tfrl.drivers.tf_loop` for how an eager call runs.
    """

    def __init__(
        self,
        env: types.TFEnv,
        policy: types.TFPolicy,
        observers: Sequence[driver.Observer] | None = None,
        transition_observers: Sequence[driver.Observer] | None = None,
        num_steps: int | tf.Tensor | tf.Variable = 1,
        *,
        use_function: bool = True,
    ) -> None:
        """Creates a driver; for the observers see `Driver`.

        With `use_function=False`, an eager call never traces the loop.

        Raises:
          TypeError: If `env` is a Python environment.
        """
        super().__init__(env, policy, observers, transition_observers, use_function)
        self._num_steps = num_steps

    def run(
        self,
        time_step: Any = None,
        policy_state: Any = None,
        maximum_iterations: Any = None,
        *,
        seed: Any = None,
    ) -> tuple[types.TensorTimeStep, Any]:
        """Takes the steps.

        Args:
          time_step: The first time step, `[B, ...]`; None takes the environment's
            current step and does not reset it.
          policy_state: The policy's state at `time_step`; None takes the policy's
            initial state.
          maximum_iterations: The largest number of batched steps; None sets no limit.
          seed: An integer or int `[2]` that decides the policy's random choices; with
            None they come from the policy's own generator.

        Returns:
          The final time step and policy state, to continue from.
        """
        if time_step is None:
            time_step = self.env.current_time_step()
        return self.run_loop(
            time_step, policy_state, self._num_steps, maximum_iterations, seed
        )

    def _count(self, traj: trajectory.Trajectory) -> tf.Tensor:
        return tf_loop.count_steps(traj)
