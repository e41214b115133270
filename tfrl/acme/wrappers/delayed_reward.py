"""`DelayedRewardWrapper` gives the sum of several rewards, every few steps."""

from __future__ import annotations

import dm_env
import numpy as np
import tree

from tfrl.acme.wrappers import base
from tfrl.typing import types
from tfrl.utils import number_checks


class DelayedRewardWrapper(base.EpisodeWrapper):
    """Returns the rewards of several steps at once, and 0 at the steps in between.

    The return of an episode stays the same. It becomes harder to learn which step
    earned a reward.
    """

    def __init__(
        self,
        environment: dm_env.Environment,
        accumulation_period: int | None = 1,
    ):
        """Wraps `environment`.

        Args:
          environment: The environment.
          accumulation_period: The number of steps after which their rewards are given
            at once. The remaining rewards are given at the end of the episode; with
            None, all rewards are given there.

        Raises:
          ValueError: If `accumulation_period` is not positive.
        """
        super().__init__(environment)
        number_checks.check_integer(
            "accumulation_period",
            accumulation_period,
            1,
            optional=True,
            remedy="pass None to give the rewards at the end of an episode",
        )
        self._period = accumulation_period
        self._num_steps = 0
        self._reward = self._zero()

    def _reset(self) -> dm_env.TimeStep:
        self._num_steps = 0
        self._reward = self._zero()
        return self._environment.reset()

    def _step(self, action: types.NestedArray) -> dm_env.TimeStep:
        timestep = self._environment.step(action)
        self._num_steps += 1
        self._reward = base.cast(
            tree.map_structure(np.add, self._reward, timestep.reward),
            self._environment.reward_spec(),
        )
        reward = self._zero()
        if timestep.last() or self._num_steps == self._period:
            reward, self._reward = self._reward, reward
            self._num_steps = 0
        return timestep._replace(reward=reward)

    def _zero(self) -> types.NestedArray:
        return tree.map_structure(
            lambda spec: np.zeros(spec.shape, spec.dtype),
            self._environment.reward_spec(),
        )
