"""Bandits of the user's Python functions, with rewards by context and arm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfrl.bandits.environments import bandit_py_environment
from tfrl.specs import array_spec, bandit_spec_utils


class StationaryStochasticPyEnvironment(bandit_py_environment.BatchedPyEnvironment):
    """Contexts and rewards are drawn by functions, which have seeds of their own."""

    def __init__(
        self,
        context_sampling_fn: Callable[[], np.ndarray],
        reward_fns: Sequence[Callable[[np.ndarray], Any]],
        constraint_fns: Sequence[Callable[[np.ndarray], Any]] | None = None,
        batch_size: int | None = 1,
        name: str | None = "stationary_stochastic",
    ) -> None:
        """Stores the functions.

        Args:
          context_sampling_fn: Draws contexts `[B, d]`.
          reward_fns: A function for each arm, which draws the reward of a context.
          constraint_fns: The same for numbers of constraints, or None.
          batch_size: The number of members, B.
          name: The environment's name.

        Raises:
          ValueError: Contexts are not `[B, d]`.
        """
        example = np.asarray(context_sampling_fn())
        if example.shape[0] != (batch_size or 1):
            raise ValueError(
                f"batch_size: got {batch_size} for contexts of shape {example.shape}: "
                "the outer dimension of the observations should match the batch size."
            )
        self._context_sampling_fn = context_sampling_fn
        self._functions = {bandit_spec_utils.REWARD_SPEC_KEY: reward_fns}
        if constraint_fns is not None:
            self._functions[bandit_spec_utils.CONSTRAINTS_SPEC_KEY] = constraint_fns
        specs = {
            key: array_spec.ArraySpec(np.shape(fns[0](example[0])), np.float32, key)
            for key, fns in self._functions.items()
        }
        super().__init__(
            array_spec.ArraySpec.from_array(example[0]),
            len(reward_fns),
            batch_size,
            self._reward_of(specs),
            name,
        )

    def _reward_of(self, found: dict[str, Any]) -> Any:
        """Returns a reward, or a dictionary of it and of constraints."""
        return found if len(found) > 1 else found[bandit_spec_utils.REWARD_SPEC_KEY]

    def _observe(self) -> Any:
        return np.asarray(self._context_sampling_fn())

    def _apply_action(self, action: Any) -> Any:
        contexts = self.current_time_step().observation
        pairs = list(zip(action, contexts, strict=True))
        return self._reward_of(
            {
                key: np.stack([fns[arm](x) for arm, x in pairs])
                for key, fns in self._functions.items()
            }
        )
