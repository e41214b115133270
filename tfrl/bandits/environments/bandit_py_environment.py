"""`BanditPyEnvironment`, the base class of bandits that are written in Python."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.trajectories import time_step as ts


class BanditPyEnvironment(py_environment.PyEnvironment):
    """A bandit whose subclass writes `_observe` and `_apply_action` with NumPy.

    Wrap it in `tfrl.environments.TFPyEnvironment` for agents. A batched one overrides
    `batched` and `batch_size`.
    """

    _handle_auto_reset = False

    def __init__(
        self,
        observation_spec: Any,
        action_spec: Any,
        reward_spec: Any = None,
        name: str | None = None,
    ) -> None:
        """Stores the specs.

        Args:
          observation_spec: The nest of `ArraySpec`s of an observation.
          action_spec: The nest of `ArraySpec`s of an action.
          reward_spec: The nest of `ArraySpec`s of a reward; None for a float32 number.
          name: The environment's name.
        """
        super().__init__(handle_auto_reset=False)
        self._observation_spec = observation_spec
        self._action_spec = action_spec
        self._reward_spec = reward_spec
        self._name = name

    @property
    def is_bandit(self) -> bool:
        """Always True: each step is a whole round."""
        return True

    @property
    def name(self) -> str | None:
        """The name that was given."""
        return self._name

    def observation_spec(self) -> Any:
        """The nest of `ArraySpec`s of the observations, without the batch."""
        return self._observation_spec

    def action_spec(self) -> Any:
        """The nest of `ArraySpec`s of the actions, without the batch."""
        return self._action_spec

    def reward_spec(self) -> Any:
        """The nest of `ArraySpec`s of the rewards, without the batch."""
        spec = self._reward_spec
        return super().reward_spec() if spec is None else spec

    def _reset(self) -> ts.TimeStep:
        return ts.restart(self._observe(), self.batch_size, self.reward_spec())

    def _step(self, action: Any) -> ts.TimeStep:
        reward = tree.map_structure(
            lambda spec, value: np.asarray(value, spec.dtype),
            self.reward_spec(),
            self._apply_action(action),
        )
        # `termination` makes all rewards float32.
        return ts.termination(self._observe(), reward)._replace(reward=reward)

    @abc.abstractmethod
    def _apply_action(self, action: Any) -> Any:
        """Returns the reward of an action, or of actions `[B, ...]` if batched."""

    @abc.abstractmethod
    def _observe(self) -> Any:
        """Returns the observation of the next round."""
