"""`GoalReplayEnvWrapper`: environments that observe a goal, for hindsight replay."""

from __future__ import annotations

import abc
import copy
from typing import Any

import numpy as np
import tree

from tfrl.environments.wrappers import base
from tfrl.trajectories import time_step as ts


class GoalReplayEnvWrapper(base.PyEnvironmentBaseWrapper):
    """Chooses a goal for each episode and writes it into every time step.

    A subclass defines the goal that a time step has reached, and writes a given goal
    into a time step. The same two functions relabel stored experience:
    `get_goal_from_trajectory` of a later step gives a goal that was reached, and
    `get_trajectory_with_goal` rewrites an earlier step as if that had been its goal
    (Hindsight Experience Replay, Andrychowicz et al., 2017, arXiv:1707.01495, section
    3.3). A subclass that changes the structure of observations overrides
    `observation_spec` as well.

    In a batch, a goal is a nest of arrays `[B, ...]`, and each member keeps its goal
    until its next episode.
    """

    _goal: Any = None

    @abc.abstractmethod
    def get_trajectory_with_goal(self, trajectory: ts.TimeStep, goal: Any) -> Any:
        """Returns `trajectory`, a time step, rewritten for the goal `goal`.

        It must not change its argument, but return new arrays.
        """

    @abc.abstractmethod
    def get_goal_from_trajectory(self, trajectory: ts.TimeStep) -> Any:
        """Returns the goal that `trajectory`, a time step, has reached."""

    def _get_wrapper_state(self) -> Any:
        return copy.deepcopy(self._goal)

    def _set_wrapper_state(self, state: Any) -> None:
        self._goal = copy.deepcopy(state)

    def _reset(self) -> ts.TimeStep:
        time_step = self._env.reset()
        self._goal = self.get_goal_from_trajectory(time_step)
        return self.get_trajectory_with_goal(time_step, self._goal)

    def _step(self, action: Any) -> ts.TimeStep:
        time_step = self._env.step(action)
        first = np.asarray(time_step.is_first())
        if first.any():
            self._goal = self._renewed_goal(time_step, first)
        return self.get_trajectory_with_goal(time_step, self._goal)

    def _renewed_goal(self, time_step: ts.TimeStep, first: np.ndarray) -> Any:
        """Returns the goals; members at a FIRST step get new ones."""
        new = self.get_goal_from_trajectory(time_step)
        if first.all():
            return new

        def choose(new_leaf: Any, old_leaf: Any) -> np.ndarray:
            array = np.asarray(new_leaf)
            if array.shape[:1] != first.shape:
                raise ValueError(
                    f"goal: got shape {array.shape}, expected {first.shape} in front, "
                    "one goal for each member; return goals like the observations "
                    "from get_goal_from_trajectory."
                )
            mask = first.reshape(first.shape + (1,) * (array.ndim - 1))
            return np.where(mask, array, old_leaf)

        return tree.map_structure(choose, new, self._goal)
