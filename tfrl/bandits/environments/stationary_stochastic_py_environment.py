"""`StationaryStochasticPyEnvironment`, a bandit of your own functions in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfrl.bandits.environments import batched_py_bandit
from tfrl.specs import array_spec, bandit_spec_utils


class StationaryStochasticPyEnvironment(batched_py_bandit.BatchedPyBandit):
    """Contexts of a function, and rewards of a function for each arm.

    The functions draw their own random numbers, so a seed for them is yours to give.
    `rounds.dynamics` makes such a bandit in TensorFlow, for loops that compile it.
    """

    def __init__(
        self,
        context_sampling_fn: Callable[[], np.ndarray],
        reward_fns: Sequence[Callable[[np.ndarray], Any]],
        constraint_fns: Sequence[Callable[[np.ndarray], Any]] | None = None,
        batch_size: int = 1,
        name: str | None = "stationary_stochastic",
    ) -> None:
        """Makes the environment.

        Args:
          context_sampling_fn: Returns contexts `[B, d]`.
          reward_fns: A function for each arm, from a context `[d]` to its reward, a
            number or an array.
          constraint_fns: The same for what a constraint looks at; None without. With
            it, rewards are `{"reward": ..., "constraint": ...}`.
          batch_size: The number of members.
          name: The environment's name.

        Raises:
          ValueError: There are not `batch_size` contexts.
        """
        context = np.asarray(context_sampling_fn())
        if context.shape[0] != batch_size:
            raise ValueError(
                f"context_sampling_fn: got {context.shape[0]} contexts, expected "
                f"batch_size, which is {batch_size}; return as many."
            )
        self._context_sampling_fn = context_sampling_fn
        self._functions = {bandit_spec_utils.REWARD_SPEC_KEY: reward_fns}
        if constraint_fns is not None:
            self._functions[bandit_spec_utils.CONSTRAINTS_SPEC_KEY] = constraint_fns
        specs = {
            key: array_spec.ArraySpec(
                np.shape(functions[0](context[0])), np.float32, key
            )
            for key, functions in self._functions.items()
        }
        super().__init__(
            array_spec.ArraySpec.from_array(context[0]),
            len(reward_fns),
            batch_size,
            self._only_rewards(specs),
            name,
        )

    def _draw(self) -> np.ndarray:
        return np.asarray(self._context_sampling_fn())

    def _rewards(self, action: np.ndarray) -> Any:
        rows = list(zip(action, self._observation, strict=True))
        return self._only_rewards(
            {
                key: np.stack([functions[arm](context) for arm, context in rows])
                for key, functions in self._functions.items()
            }
        )

    def _only_rewards(self, values: dict[str, Any]) -> Any:
        """Returns the rewards alone if there are no constraints."""
        if len(self._functions) > 1:
            return values
        return values[bandit_spec_utils.REWARD_SPEC_KEY]
