"""Wrappers that select from observations, flatten them or write goals into them."""

from __future__ import annotations

import abc
import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tree

from tfrl.environments import observation_parts, py_environment
from tfrl.environments.wrappers import base
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts


class ObservationFilterWrapper(base.PyEnvironmentBaseWrapper):
    """Observes only some elements of a vector."""

    def __init__(
        self,
        env: py_environment.PyEnvironment,
        idx: Sequence[int] | np.ndarray,
        handle_auto_reset: bool = True,
        *,
        for_critics: bool = False,
    ):
        """Wraps `env`, whose observation is a single vector.

        Args:
          env: The environment.
          idx: The indices of the elements, in the order of the result; negative ones
            count from the end.
          handle_auto_reset: See `PyEnvironment`.
          for_critics: Whether critics see the whole vector, as the part
            `critic_observation`; actors then see the chosen elements alone.

        Raises:
          ValueError: If `env` has other observations, or `idx` is not a vector of
            indices into them.
        """
        super().__init__(env, handle_auto_reset)
        spec = env.observation_spec()
        if tree.is_nested(spec) or len(spec.shape) != 1:
            raise ValueError(
                f"env: got the observation spec {spec}, expected a single vector to "
                "choose from; flatten the observations with "
                "FlattenObservationsWrapper first."
            )
        self._idx = _as_indices(idx, spec.shape[0])
        chosen: dict[str, Any] = {"shape": self._idx.shape}
        if array_spec.is_bounded(spec):
            for name in ("minimum", "maximum"):
                bound = np.broadcast_to(getattr(spec, name), spec.shape)
                chosen[name] = bound[self._idx]
        self._for_critics = for_critics
        self._spec = self._parts(spec.replace(**chosen), spec)

    def observation_spec(self) -> Any:
        """The spec of the chosen elements, or of both parts."""
        return self._spec

    def _parts(self, chosen: Any, whole: Any) -> Any:
        if not self._for_critics:
            return chosen
        return {
            observation_parts.OBSERVATION: chosen,
            observation_parts.CRITIC: whole,
        }

    def _changed(self, time_step: ts.TimeStep) -> ts.TimeStep:
        whole = np.asarray(time_step.observation)
        return time_step._replace(observation=self._parts(whole[..., self._idx], whole))


class FlattenObservationsWrapper(base.PyEnvironmentBaseWrapper):
    """Observes one vector `[N]` instead of a nest of arrays of any shapes.

    The elements follow the nest's order (dicts by sorted key), each array row by row.
    The spec of the vector has no bounds.
    """

    def __init__(
        self,
        env: py_environment.PyEnvironment,
        observations_allowlist: Sequence[str] | None = None,
        handle_auto_reset: bool = True,
    ):
        """Wraps `env`, whose observations have one dtype.

        Args:
          env: The environment.
          observations_allowlist: The keys to keep, if observations are a dict; None
            keeps all.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          ValueError: If `observations_allowlist` is given and the observations are not
            a dict, or it is empty or has unknown keys; or if the kept observations have
            different dtypes.
        """
        super().__init__(env, handle_auto_reset)
        spec = env.observation_spec()
        self._keys = _as_keys(observations_allowlist, spec)
        self._kept_spec = self._keep(spec)
        flat = tree.flatten(self._kept_spec)
        dtypes = sorted({str(leaf.dtype) for leaf in flat})
        if len(dtypes) != 1:
            raise ValueError(
                f"env: got observations of dtypes {', '.join(dtypes) or 'none'}, "
                "expected a single dtype; choose some of the observations with "
                "observations_allowlist, or give them one dtype."
            )
        self._flat_spec = array_spec.ArraySpec(
            (sum(math.prod(leaf.shape) for leaf in flat),),
            flat[0].dtype,
            name="packed_observations",
        )

    def observation_spec(self) -> array_spec.ArraySpec:
        """The spec of the vector."""
        return self._flat_spec

    def _changed(self, time_step: ts.TimeStep) -> ts.TimeStep:
        outer = base.outer_shape(self._env)
        leaves = tree.flatten_up_to(self._kept_spec, self._keep(time_step.observation))
        flat = [
            base.as_declared(leaf, self._flat_spec.dtype).reshape(*outer, -1)
            for leaf in leaves
        ]
        return time_step._replace(observation=np.concatenate(flat, axis=-1))

    def _keep(self, nest: Any) -> Any:
        return nest if self._keys is None else {key: nest[key] for key in self._keys}


def _as_indices(idx: Any, size: int) -> np.ndarray:
    indices = np.asarray(idx)
    if (
        indices.ndim != 1
        or indices.size == 0
        or not np.issubdtype(indices.dtype, np.integer)
        or np.any(indices < -size)
        or np.any(indices >= size)
    ):
        raise ValueError(
            f"idx: got {idx}, expected a vector of one or more indices from {-size} to "
            f"{size - 1}; turn a mask into indices with np.flatnonzero."
        )
    return indices


def _as_keys(allowlist: Sequence[str] | None, spec: Any) -> list[str] | None:
    if allowlist is None:
        return None
    if not isinstance(spec, Mapping):
        raise ValueError(
            f"observations_allowlist: got {allowlist} for the observation spec {spec}, "
            "expected observations that are a dict; leave the list out."
        )
    keys = [allowlist] if isinstance(allowlist, str) else list(allowlist)
    unknown = [key for key in keys if key not in spec]
    if unknown or not keys:
        raise ValueError(
            f"observations_allowlist: got {allowlist}, expected one or more of the "
            f"keys {sorted(spec)}{f', and not {unknown}' if unknown else ''}; correct "
            "the list."
        )
    return keys


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
