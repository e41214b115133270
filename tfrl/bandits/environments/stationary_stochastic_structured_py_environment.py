"""Bandits of the user's Python functions, with nests of features of arms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tree

from tfrl.bandits.environments import batched_py_environment
from tfrl.specs import array_spec
from tfrl.specs.bandit_spec_utils import GLOBAL_FEATURE_KEY, PER_ARM_FEATURE_KEY


class StationaryStochasticStructuredPyEnvironment(
    batched_py_environment.BatchedPyEnvironment
):
    """Features are nests that functions draw, which have seeds of their own."""

    def __init__(
        self,
        global_context_sampling_fn: Callable[[], Any],
        arm_context_sampling_fn: Callable[[], Any],
        num_actions: int,
        reward_fn: Callable[[Any, Any], Any],
        batch_size: int | None = 1,
        name: str | None = "stationary_stochastic_structured",
        *,
        further_spec: dict[str, Any] | None = None,
    ) -> None:
        """Stores the functions.

        Args:
          global_context_sampling_fn: Draws the features that all arms share.
          arm_context_sampling_fn: Draws the features of an arm.
          num_actions: The number of arms.
          reward_fn: `reward_fn(global, arm)` draws the reward of an arm's features.
          batch_size: The number of members.
          name: The environment's name.
          further_spec: The specs of what a subclass adds to the observation.
        """
        self._functions = global_context_sampling_fn, arm_context_sampling_fn
        self._num_arms = num_actions
        self._reward_fn = reward_fn
        of_all, of_arm = (
            tree.map_structure(lambda x: array_spec.ArraySpec.from_array(x), draw())
            for draw in self._functions
        )
        of_arms = array_spec.add_outer_dims_nest(of_arm, (num_actions,))
        spec = {GLOBAL_FEATURE_KEY: of_all, PER_ARM_FEATURE_KEY: of_arms}
        super().__init__(
            spec | (further_spec or {}), num_actions, batch_size, name=name
        )

    def _observe(self) -> Any:
        of_all, of_arm = self._functions
        arms = _drawn(of_arm, self._size * self._num_arms)
        shape = self._size, self._num_arms
        self._observation = {
            GLOBAL_FEATURE_KEY: _drawn(of_all, self._size),
            PER_ARM_FEATURE_KEY: tree.map_structure(
                lambda x: x.reshape(shape + x.shape[1:]), arms
            ),
        }
        return self._observation

    def _apply_action(self, action: Any) -> Any:
        self._check_number(action)
        of_all = self._observation[GLOBAL_FEATURE_KEY]
        arms = self._observation[PER_ARM_FEATURE_KEY]
        return np.stack(
            [
                self._reward_fn(
                    tree.map_structure(lambda x, i=i: x[i], of_all),
                    tree.map_structure(lambda x, i=i, arm=arm: x[i, arm], arms),
                )
                for i, arm in enumerate(action)
            ]
        )


def _drawn(draw: Callable[[], Any], number: int) -> Any:
    """Returns a nest of so many draws, stacked."""
    return tree.map_structure(lambda *x: np.stack(x), *(draw() for _ in range(number)))
