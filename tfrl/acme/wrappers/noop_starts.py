"""`NoopStartsWrapper` begins episodes with a random number of no-ops."""

from __future__ import annotations

import dm_env
import numpy as np

from tfrl.acme.wrappers import base
from tfrl.typing import types
from tfrl.utils import number_checks


class NoopStartsWrapper(base.EpisodeWrapper):
    """Takes 0 to `noop_max` steps without an action before each episode.

    This gives a deterministic environment random first states: Mnih et al. 2015,
    "Human-level control through deep reinforcement learning". If an episode ends during
    these steps, a new one is begun.
    """

    def __init__(
        self,
        environment: dm_env.Environment,
        noop_action: types.NestedArray = 0,
        noop_max: int = 30,
        seed: int | None = None,
    ):
        """Wraps `environment`.

        Args:
          environment: The environment.
          noop_action: The action that does nothing, in the form of the environment's
            actions.
          noop_max: The greatest number of no-ops; each number is equally likely.
          seed: Seeds the numbers; None for the system's entropy.

        Raises:
          ValueError: If `noop_max` is negative.
        """
        super().__init__(environment)
        number_checks.check_integer(
            "noop_max", noop_max, 0, remedy="leave the wrapper out for no no-ops"
        )
        self._noop_action = noop_action
        self._noop_max = noop_max
        self._rng = np.random.default_rng(seed)

    def _reset(self) -> dm_env.TimeStep:
        timestep = self._environment.reset()
        for _ in range(self._rng.integers(self._noop_max, endpoint=True)):
            timestep = self._environment.step(self._noop_action)
            if timestep.last():
                timestep = self._environment.reset()
        return dm_env.restart(timestep.observation)
