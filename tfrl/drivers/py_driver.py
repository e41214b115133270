"""Runs a Python policy in a Python environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrl.drivers import driver
from tfrl.environments import tf_environment
from tfrl.environments.boundary import action_arrays, time_step_checker
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.typing import types


class PyDriver(driver.Driver):
    """Steps a `PyEnvironment`, batched or not, and passes NumPy values to observers.

    Every time step and action is checked against the environment's specs before an
    observer sees it, and gets the dtypes of the specs.

    With a batched environment, collecting until `max_episodes` have ended favours short
    episodes; `tfrl.eval.Evaluator` is free of that bias.
    """

    def __init__(
        self,
        env: types.PyEnv,
        policy: types.PyPolicy,
        observers: Sequence[driver.Observer],
        transition_observers: Sequence[driver.Observer] | None = None,
        info_observers: Sequence[driver.Observer] | None = None,
        max_steps: int | None = None,
        max_episodes: int | None = None,
        end_episode_on_boundary: bool = True,
    ) -> None:
        """Creates a driver whose `run` ends at the first limit that is reached.

        Args:
          env: A `PyEnvironment`.
          policy: A `PyPolicy`, or a TFPolicy in a `PyTFEagerPolicy`.
          observers: See `Driver`.
          transition_observers: See `Driver`. The `action_step` that they receive holds
            the policy state from *before* the action, which training needs.
          info_observers: See `Driver`.
          max_steps: The number of environment steps in a run, summed over the batch;
            boundaries are observed but not counted.
          max_episodes: The number of episodes in a run, summed over the batch.
          end_episode_on_boundary: Whether an episode counts when its boundary (the
            reset after it) has been observed, which trajectory observers need. If
            False, it counts at its last step, which transition observers need.

        Raises:
          ValueError: If neither limit is above 0.
          TypeError: If `env` is a TensorFlow environment.
        """
        driver.check_limits(max_steps, max_episodes)
        if isinstance(env, tf_environment.TFEnvironment):
            raise TypeError(
                f"env: got {type(env).__name__}, a TensorFlow environment, but "
                f"{type(self).__name__} steps a PyEnvironment; give it the Python "
                "environment, or use DynamicStepDriver or TFDriver."
            )
        super().__init__(env, policy, observers, transition_observers, info_observers)
        self._max_steps = max_steps or np.inf
        self._max_episodes = max_episodes or np.inf
        self._end_episode_on_boundary = end_episode_on_boundary
        self._check_time_step = time_step_checker.TimeStepChecker.of(env)
        self._check_action = action_arrays.ActionChecker.of(env)
        self._num_checks = 0
        self._last_checked: Any = None

    def run(
        self, time_step: ts.TimeStep, policy_state: Any = ()
    ) -> tuple[types.ArrayTimeStep, Any]:
        """Runs the policy from `time_step` on.

        In an unbatched environment the policy's state is reset at the start of every
        episode except the first, which starts from `policy_state`.

        Returns:
          The final time step and policy state, to continue from.

        Raises:
          ValueError: A time step or an action does not match its spec, or has numbers
            that are not finite. The message names the environment and the field.
          TypeError: An action has a dtype of another kind than its spec.
        """
        if time_step is not self._last_checked:
            time_step = self._checked(time_step)
        num_steps = num_episodes = 0
        while num_steps < self._max_steps and num_episodes < self._max_episodes:
            if num_episodes and not self.env.batched and time_step.is_first():
                policy_state = self.policy.get_initial_state(self.env.batch_size or 1)
            if self.env.is_bandit:
                time_step = ts.new_round(time_step)
            action_step = self.policy.action(time_step, policy_state)
            action = self._check_action.conform(action_step.action)
            action_step = action_step._replace(action=action)
            next_time_step = self._checked(self.env.step(action))

            traj = self._observe(
                time_step, action_step._replace(state=policy_state), next_time_step
            )
            # A bandit has no resets between its rounds.
            on_boundary = self._end_episode_on_boundary and not self.env.is_bandit
            ended = traj.is_reset() if on_boundary else traj.is_episode_end()
            num_episodes += int(np.count_nonzero(ended))
            num_steps += int(np.count_nonzero(~traj.is_boundary()))
            time_step, policy_state = next_time_step, action_step.state
        return time_step, policy_state

    def _checked(self, time_step: ts.TimeStep) -> ts.TimeStep:
        self._num_checks += 1
        self._last_checked = self._check_time_step.conform(time_step, self._num_checks)
        return self._last_checked

    def _observe(
        self, time_step: ts.TimeStep, action_step: Any, next_time_step: ts.TimeStep
    ) -> trajectory.Trajectory:
        for observer in self.transition_observers:
            observer((time_step, action_step, next_time_step))
        traj = trajectory.from_transition(time_step, action_step, next_time_step)
        for observer in self.observers:
            observer(traj)
        for observer in self.info_observers:
            observer(self.env.get_info())
        return traj
