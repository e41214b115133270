"""Bandits of your own functions in Python, with nests of features of the arms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tree

from tfrl.bandits.environments import batched_py_bandit
from tfrl.specs import array_spec, bandit_spec_utils


class StationaryStochasticStructuredPyEnvironment(batched_py_bandit.BatchedPyBandit):
    """Features of functions, and rewards of a function of global and arm features.

    The functions draw their own random numbers, so a seed for them is yours to give.
    """

    def __init__(
        self,
        global_context_sampling_fn: Callable[[], Any],
        arm_context_sampling_fn: Callable[[], Any],
        num_actions: int,
        reward_fn: Callable[[Any, Any], Any],
        batch_size: int = 1,
        name: str | None = "stationary_stochastic_structured",
    ) -> None:
        """Makes the environment.

        Args:
          global_context_sampling_fn: Returns the nest of global features of a member.
          arm_context_sampling_fn: Returns the nest of features of an arm.
          num_actions: The number of arms.
          reward_fn: Maps global features and those of an arm to its reward.
          batch_size: The number of members.
          name: The environment's name.
        """
        self._draw_global = global_context_sampling_fn
        self._draw_arm = arm_context_sampling_fn
        self._num_actions = num_actions
        self._reward_fn = reward_fn
        of_all, of_arm = (
            tree.map_structure(lambda x: array_spec.ArraySpec.from_array(_array(x)), x)
            for x in (global_context_sampling_fn(), arm_context_sampling_fn())
        )
        spec = {
            bandit_spec_utils.GLOBAL_FEATURE_KEY: of_all,
            bandit_spec_utils.PER_ARM_FEATURE_KEY: array_spec.add_outer_dims_nest(
                of_arm, (num_actions,)
            ),
        }
        spec.update(self._number_spec())
        super().__init__(spec, num_actions, batch_size, name=name)

    def _number_spec(self) -> dict[str, Any]:
        """Returns the spec of the number of arms, if the observation has it."""
        return {}

    def _draw(self) -> dict[str, Any]:
        size, arms = self.batch_size, self._num_actions
        drawn = _stack([self._draw_arm() for _ in range(size * arms)])
        return {
            bandit_spec_utils.GLOBAL_FEATURE_KEY: _stack(
                [self._draw_global() for _ in range(size)]
            ),
            bandit_spec_utils.PER_ARM_FEATURE_KEY: tree.map_structure(
                lambda x: x.reshape(size, arms, *x.shape[1:]), drawn
            ),
        }

    def _rewards(self, action: np.ndarray) -> np.ndarray:
        of_all = self._observation[bandit_spec_utils.GLOBAL_FEATURE_KEY]
        of_arms = self._observation[bandit_spec_utils.PER_ARM_FEATURE_KEY]
        return np.stack(
            [
                self._reward_fn(_row(of_all, i), _row(of_arms, (i, arm)))
                for i, arm in enumerate(action)
            ]
        )


def _array(features: Any) -> np.ndarray:
    return np.asarray(features)


def _stack(nests: list[Any]) -> Any:
    return tree.map_structure(lambda *x: np.stack([_array(each) for each in x]), *nests)


def _row(nest: Any, index: Any) -> Any:
    return tree.map_structure(lambda x: x[index], nest)
