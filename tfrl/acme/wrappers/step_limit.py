"""`StepLimitWrapper` truncates episodes after a number of steps."""

from __future__ import annotations

import dm_env

from tfrl.acme.wrappers import base
from tfrl.typing import types
from tfrl.utils import number_checks


class StepLimitWrapper(base.EpisodeWrapper):
    """Truncates episodes after a number of steps.

    Only the step type changes. The discount stays, so the value of the last observation
    is bootstrapped, unless the environment terminates at that step.
    """

    def __init__(self, environment: dm_env.Environment, step_limit: int | None = None):
        """Wraps `environment`.

        Args:
          environment: The environment.
          step_limit: The number of steps after which an episode is truncated; None for
            no limit.

        Raises:
          ValueError: If `step_limit` is not positive.
        """
        super().__init__(environment)
        number_checks.check_integer(
            "step_limit", step_limit, 1, optional=True, remedy="pass None for no limit"
        )
        self._step_limit = step_limit
        self._num_steps = 0

    def _reset(self) -> dm_env.TimeStep:
        self._num_steps = 0
        return self._environment.reset()

    def _step(self, action: types.NestedArray) -> dm_env.TimeStep:
        timestep = self._environment.step(action)
        self._num_steps += 1
        if self._num_steps == self._step_limit:
            return timestep._replace(step_type=dm_env.StepType.LAST)
        return timestep
