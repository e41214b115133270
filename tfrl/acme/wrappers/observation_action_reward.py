"""`ObservationActionRewardWrapper` adds the last action and reward to observations."""

from __future__ import annotations

from typing import Any, NamedTuple

import dm_env
import tree

from tfrl.acme.wrappers import base
from tfrl.typing import types


class OAR(NamedTuple):
    """An observation with the action and the reward that led to it, each a nest."""

    observation: Any
    action: Any
    reward: Any


class ObservationActionRewardWrapper(base.EpisodeWrapper):
    """Observes `OAR`: the observation, the action before it, and its reward.

    Recurrent agents such as R2D2 and IMPALA observe all three. At a FIRST step the
    reward is 0, and the action is the least one that its spec allows, 0 for a
    `DiscreteArray`.
    """

    def observation_spec(self) -> OAR:
        """The specs of the observation, the action and the reward."""
        return OAR(
            observation=self._environment.observation_spec(),
            action=self._environment.action_spec(),
            reward=self._environment.reward_spec(),
        )

    def _reset(self) -> dm_env.TimeStep:
        action, reward = tree.map_structure(
            lambda spec: spec.generate_value(),
            (self._environment.action_spec(), self._environment.reward_spec()),
        )
        return self._augment(self._environment.reset(), action, reward)

    def _step(self, action: types.NestedArray) -> dm_env.TimeStep:
        timestep = self._environment.step(action)
        return self._augment(timestep, action, timestep.reward)

    def _augment(
        self, timestep: dm_env.TimeStep, action: Any, reward: Any
    ) -> dm_env.TimeStep:
        return timestep._replace(
            observation=OAR(
                observation=timestep.observation,
                action=base.cast(action, self._environment.action_spec()),
                reward=base.cast(reward, self._environment.reward_spec()),
            )
        )
