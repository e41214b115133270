"""Bandits of the user's Python functions, with features of arms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfrl.bandits.environments import (
    stationary_stochastic_structured_py_environment as structured,
)
from tfrl.specs import array_spec, bandit_spec_utils


class StationaryStochasticPerArmPyEnvironment(
    structured.StationaryStochasticStructuredPyEnvironment
):
    """The reward is a function of the global features followed by those of the arm."""

    def __init__(
        self,
        global_context_sampling_fn: Callable[[], np.ndarray],
        arm_context_sampling_fn: Callable[[], np.ndarray],
        max_num_actions: int,
        reward_fn: Callable[[np.ndarray], Any],
        num_actions_fn: Callable[[], int] | None = None,
        batch_size: int | None = 1,
        name: str | None = "stationary_stochastic_per_arm",
    ) -> None:
        """Stores the functions.

        Args:
          global_context_sampling_fn: Draws the features that all arms share, `[G]`.
          arm_context_sampling_fn: Draws the features of an arm, `[P]`.
          max_num_actions: The number of arms with the padding.
          reward_fn: Draws the reward of features `[G + P]`.
          num_actions_fn: Draws the number of arms without the padding, which is clipped
            to 1 and `max_num_actions`; None for no padding.
          batch_size: The number of members.
          name: The environment's name.
        """
        self._num_actions_fn = num_actions_fn
        further = {}
        if num_actions_fn is not None:
            further[bandit_spec_utils.NUM_ACTIONS_FEATURE_KEY] = (
                array_spec.BoundedArraySpec([], np.int32, 1, max_num_actions)
            )
        super().__init__(
            global_context_sampling_fn,
            arm_context_sampling_fn,
            max_num_actions,
            lambda of_all, arm: reward_fn(np.concatenate([of_all, arm])),
            batch_size,
            name,
            further_spec=further,
        )

    def _observe(self) -> Any:
        observation = super()._observe()
        if self._num_actions_fn is not None:
            numbers = [self._num_actions_fn() for _ in range(self._size)]
            observation[bandit_spec_utils.NUM_ACTIONS_FEATURE_KEY] = np.clip(
                np.asarray(numbers, np.int32), 1, self._num_arms
            )
        return observation
