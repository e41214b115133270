"""Wrappers that change the length of an episode, or of a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import tree
from typing_extensions import override

from tfrl.environments import py_environment
from tfrl.environments.wrappers import base
from tfrl.trajectories import time_step as ts
from tfrl.utils import number_checks

_FIRST, _LAST = int(ts.StepType.FIRST), int(ts.StepType.LAST)


class TimeLimit(base.PyEnvironmentBaseWrapper):
    """Truncates episodes after a number of steps.

    Only the step type changes. The discount stays, so the value of the last observation
    is bootstrapped, unless the environment terminates at that step.
    """

    def __init__(
        self,
        env: py_environment.PyEnvironment,
        duration: int,
        handle_auto_reset: bool = True,
    ):
        """Wraps `env`.

        Args:
          env: The environment.
          duration: The number of steps after which an episode is truncated.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          TypeError: If `duration` is not an integer.
          ValueError: If `duration` is not positive, or `env` is batched.
        """
        super().__init__(env, handle_auto_reset)
        base.refuse_batched(
            env,
            "TimeLimit",
            ", such as with the max_episode_steps of vector_py_environment.load",
        )
        number_checks.check_integer(
            "duration", duration, 1, remedy="leave the wrapper out for no limit"
        )
        self._duration = duration
        self._num_steps: int | None = None

    @property
    def duration(self) -> int:
        """The number of steps after which an episode is truncated."""
        return self._duration

    def _get_wrapper_state(self) -> Any:
        return self._num_steps

    def _set_wrapper_state(self, state: Any) -> None:
        self._num_steps = state

    def _reset(self) -> ts.TimeStep:
        self._num_steps = 0
        return self._env.reset()

    def _step(self, action: Any) -> ts.TimeStep:
        if self._num_steps is None:
            return self.reset()
        time_step = self._env.step(action)
        self._num_steps += 1
        if self._num_steps >= self._duration:
            time_step = time_step._replace(step_type=ts.StepType.LAST)
        step_type = time_step.step_type
        if step_type is not ts.StepType.MID and int(step_type) == _LAST:
            self._num_steps = None
        return time_step


class FixedLength(base.PyEnvironmentBaseWrapper):
    """Gives every episode the same number of steps.

    A longer episode is truncated, as by `TimeLimit`. A shorter one is padded: its LAST
    step is repeated with reward and discount 0 until the number is reached; these steps
    ignore their actions. A frame that starts at a LAST step is a boundary, so agents
    learn nothing from the padding, and drivers and metrics do not count it. Make this
    the outermost wrapper: a wrapper around it would reset after the first LAST step.
    """

    def __init__(
        self,
        env: py_environment.PyEnvironment,
        fix_length: int,
        handle_auto_reset: bool = True,
    ):
        """Wraps `env`.

        Args:
          env: The environment.
          fix_length: The number of steps of every episode, without the reset. The step
            after them resets, with or without `handle_auto_reset`.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          TypeError: If `fix_length` is not an integer.
          ValueError: If `fix_length` is not positive, or `env` is batched.
        """
        super().__init__(env, handle_auto_reset)
        base.refuse_batched(env, "FixedLength", "")
        number_checks.check_integer(
            "fix_length",
            fix_length,
            1,
            remedy="give the number of steps that every episode is to have",
        )
        self._fix_length = fix_length
        self._num_steps = 0
        self._ended = False

    @property
    def fix_length(self) -> int:
        """The number of steps of each episode."""
        return self._fix_length

    @override
    def should_reset(self, current_time_step: ts.TimeStep) -> bool:
        """Whether `step` has to reset: only after the padding."""
        return self._num_steps >= self._fix_length

    def _get_wrapper_state(self) -> Any:
        return self._num_steps, self._ended

    def _set_wrapper_state(self, state: Any) -> None:
        self._num_steps, self._ended = state

    def _reset(self) -> ts.TimeStep:
        self._num_steps = 0
        self._ended = False
        return self._env.reset()

    def _step(self, action: Any) -> ts.TimeStep:
        self._num_steps += 1
        if self._ended:
            current = self.current_time_step()
            return current._replace(
                reward=tree.map_structure(np.zeros_like, current.reward),
                discount=np.zeros_like(current.discount),
            )
        time_step = self._env.step(action)
        if self._num_steps >= self._fix_length:
            time_step = time_step._replace(step_type=ts.StepType.LAST)
        self._ended = int(time_step.step_type) == _LAST
        return time_step


class ActionRepeat(base.PyEnvironmentBaseWrapper):
    """Applies each action several times in one step.

    The step has the last observation, the undiscounted sum of the rewards, so that the
    return of an episode does not change, and the product of the discounts. A step stops
    early at the end of an episode.

    Attributes:
      times: The number of times that each action is applied.
    """

    def __init__(
        self,
        env: py_environment.PyEnvironment,
        times: int,
        handle_auto_reset: bool = True,
    ):
        """Wraps `env`.

        Args:
          env: The environment.
          times: The number of times that each action is applied.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          TypeError: If `times` is not an integer.
          ValueError: If `times` is not above 1, or `env` is batched.
        """
        super().__init__(env, handle_auto_reset)
        base.refuse_batched(env, "ActionRepeat", "")
        number_checks.check_integer(
            "times", times, 2, remedy="leave the wrapper out to apply each action once"
        )
        self.times = times

    def _step(self, action: Any) -> ts.TimeStep:
        rewards, discounts = [], []
        for _ in range(self.times):
            time_step = self._env.step(action)
            if int(time_step.step_type) == _FIRST:
                # The environment reset itself and ignored the action.
                return time_step
            rewards.append(time_step.reward)
            discounts.append(time_step.discount)
            if int(time_step.step_type) == _LAST:
                break
        return time_step._replace(
            reward=tree.map_structure(
                lambda spec, *parts: np.asarray(np.sum(parts, axis=0), spec.dtype),
                self.reward_spec(),
                *rewards,
            ),
            discount=np.asarray(np.prod(discounts, axis=0), np.float32),
        )
