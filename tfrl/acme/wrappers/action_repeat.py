"""`ActionRepeatWrapper`: applies an action several times in one step."""

from __future__ import annotations

import dm_env
import numpy as np
import tree

from tfrl.acme.wrappers import base
from tfrl.typing import types
from tfrl.utils import number_checks


class ActionRepeatWrapper(base.EpisodeWrapper):
    """Applies each action several times in one step.

    The step has the last observation; the sum of the rewards, each times the discounts
    before it; and the product of the discounts. A step stops early at the end of an
    episode. `tfrl.environments.ActionRepeat` leaves the rewards undiscounted.
    """

    def __init__(self, environment: dm_env.Environment, num_repeats: int = 1):
        """Wraps `environment`.

        Args:
          environment: The environment.
          num_repeats: The number of times that each action is applied.

        Raises:
          ValueError: If `num_repeats` is not positive.
        """
        super().__init__(environment)
        number_checks.check_integer(
            "num_repeats", num_repeats, 1, remedy="1 applies each action once"
        )
        self._num_repeats = num_repeats

    def _step(self, action: types.NestedArray) -> dm_env.TimeStep:
        specs = self._environment.reward_spec()
        rewards = tree.map_structure(lambda spec: np.zeros(spec.shape), specs)
        discount = 1.0
        for _ in range(self._num_repeats):
            timestep = self._environment.step(action)
            rewards = tree.map_structure(
                lambda total, reward, before=discount: total + before * reward,
                rewards,
                timestep.reward,
            )
            discount = discount * timestep.discount
            if timestep.last():
                break
        return timestep._replace(
            reward=base.cast(rewards, specs),
            discount=base.cast(discount, self._environment.discount_spec()),
        )
