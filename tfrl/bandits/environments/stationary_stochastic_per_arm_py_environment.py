"""`StationaryStochasticPerArmPyEnvironment`, arms with features, in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfrl.bandits.environments import stationary_stochastic_structured_py_environment
from tfrl.specs import array_spec, bandit_spec_utils


class StationaryStochasticPerArmPyEnvironment(
    stationary_stochastic_structured_py_environment.StationaryStochasticStructuredPyEnvironment
):
    """Features of functions, and rewards of a function of both kinds, concatenated.

    The functions draw their own random numbers, so a seed for them is yours to give.
    `problems.per_arm_linear` is such a bandit in TensorFlow.
    """

    def __init__(
        self,
        global_context_sampling_fn: Callable[[], Any],
        arm_context_sampling_fn: Callable[[], Any],
        max_num_actions: int,
        reward_fn: Callable[[np.ndarray], Any],
        num_actions_fn: Callable[[], int] | None = None,
        batch_size: int = 1,
        name: str | None = "stationary_stochastic_per_arm",
    ) -> None:
        """Makes the environment.

        Args:
          global_context_sampling_fn: Returns the global features of a member, `[G]`.
          arm_context_sampling_fn: Returns the features of an arm, `[P]`.
          max_num_actions: The largest number of arms.
          reward_fn: Maps features `[G + P]` to a reward.
          num_actions_fn: Returns the number of arms of a member in a round, which is
            clipped to `[1, max_num_actions]`; None for as many as there can be.
          batch_size: The number of members.
          name: The environment's name.
        """
        self._num_actions_fn = num_actions_fn
        self._max_num_actions = max_num_actions
        super().__init__(
            global_context_sampling_fn,
            arm_context_sampling_fn,
            max_num_actions,
            lambda of_all, of_arm: reward_fn(np.concatenate([of_all, of_arm])),
            batch_size,
            name,
        )

    def _number_spec(self) -> dict[str, Any]:
        if self._num_actions_fn is None:
            return {}
        spec = array_spec.BoundedArraySpec([], np.int32, 1, self._max_num_actions)
        return {bandit_spec_utils.NUM_ACTIONS_FEATURE_KEY: spec}

    def _draw(self) -> dict[str, Any]:
        observation = super()._draw()
        if self._num_actions_fn is not None:
            drawn = [self._num_actions_fn() for _ in range(self.batch_size)]
            observation[bandit_spec_utils.NUM_ACTIONS_FEATURE_KEY] = np.clip(
                drawn, 1, self._max_num_actions
            ).astype(np.int32)
        return observation
