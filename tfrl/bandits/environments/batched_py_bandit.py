"""The base of the bandits in Python that are here under TF-Agents' names."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np

from tfrl.bandits.environments import bandit_py_environment
from tfrl.specs import array_spec
from tfrl.utils import number_checks


class BatchedPyBandit(bandit_py_environment.BanditPyEnvironment):
    """A batched bandit with one discrete action of each member.

    A subclass draws observations in `_draw` and rewards in `_rewards`. What it draws
    itself, it draws from `_generator`, which `seed` starts anew.
    """

    def __init__(
        self,
        observation_spec: Any,
        num_actions: int,
        batch_size: int = 1,
        reward_spec: Any = None,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        """Makes the specs.

        Args:
          observation_spec: The nest of `ArraySpec`s of an observation.
          num_actions: The number of arms.
          batch_size: The number of members, which play a round each in a step.
          reward_spec: See `BanditPyEnvironment`.
          name: The environment's name.
          seed: The seed of the random numbers; None for other ones in each process.
        """
        number_checks.check_sizes(num_actions=num_actions, batch_size=batch_size)
        self._batch_size = batch_size
        self._observation: Any = None
        action_spec = array_spec.BoundedArraySpec(
            [], np.int32, 0, num_actions - 1, name="action"
        )
        super().__init__(observation_spec, action_spec, reward_spec, name)
        self._generator = np.random.default_rng(seed)
        self._is_seeded = seed is not None

    @property
    def batched(self) -> bool:
        """Always True."""
        return True

    @property
    def batch_size(self) -> int:
        """The number of members."""
        return self._batch_size

    def seed(self, seed: Any) -> None:
        """Starts the environment's own random numbers from a seed."""
        self._generator = np.random.default_rng(seed)

    def _observe(self) -> Any:
        self._observation = self._draw()
        return self._observation

    def _apply_action(self, action: Any) -> Any:
        action = np.asarray(action)
        if action.shape != (self._batch_size,):
            raise ValueError(
                f"action: got shape {action.shape}, expected ({self._batch_size},), "
                "one for each member of the batch; give as many."
            )
        return self._rewards(action)

    @abc.abstractmethod
    def _draw(self) -> Any:
        """Returns the observations of the next round, `[B, ...]`."""

    @abc.abstractmethod
    def _rewards(self, action: np.ndarray) -> Any:
        """Returns the rewards of actions `[B]` for the observations `_observation`."""
