"""`HistoryWrapper` joins the last observations, and actions, to one observation."""

from __future__ import annotations

from typing import Any

import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.environments.boundary import action_arrays
from tfrl.environments.wrappers import base
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils import number_checks


class HistoryWrapper(base.PyEnvironmentBaseWrapper):
    """Observes the last `H` observations, `[H, ...]`, oldest first.

    With actions, an observation is the dict `{"observation": ..., "action": ...}`, in
    which action `i` led to observation `i`. Entries for times before the episode are
    zeros. In a batch, `[B, H, ...]`, each member has its own history.
    """

    def __init__(
        self,
        env: py_environment.PyEnvironment,
        history_length: int = 3,
        include_actions: bool = False,
        tile_first_step_obs: bool = False,
        handle_auto_reset: bool = True,
    ):
        """Wraps `env`, whose observations and actions are any nests.

        Args:
          env: The environment.
          history_length: The number `H` of observations, including the current one.
          include_actions: Whether the actions are observed as well.
          tile_first_step_obs: Whether an episode's first observation is repeated for
            the steps before it, instead of zeros.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          TypeError: If `history_length` is not an integer.
          ValueError: If `history_length` is not positive.
        """
        super().__init__(env, handle_auto_reset)
        number_checks.check_integer(
            "history_length",
            history_length,
            1,
            remedy="give the number of observations",
        )
        self._length = history_length
        self._include_actions = include_actions
        self._tile_first = tile_first_step_obs
        self._outer_shape = base.outer_shape(env)
        self._axis = len(self._outer_shape)
        self._inner_observation_spec = env.observation_spec()
        self._observation_spec = self._make_spec()
        self._observations = self._zeros(self._inner_observation_spec)
        self._actions = self._zeros(env.action_spec())
        self._check_action = action_arrays.ActionChecker.of(env)

    def observation_spec(self) -> Any:
        """The specs of the history; their bounds allow 0 if zeros fill it up."""
        return self._observation_spec

    def _make_spec(self) -> Any:
        def lengthen(spec: Any, holds_zeros: bool) -> Any:
            longer = spec.replace(shape=(self._length, *spec.shape))
            if not (holds_zeros and array_spec.is_bounded(spec)):
                return longer
            return longer.replace(
                minimum=np.minimum(spec.minimum, np.zeros_like(spec.minimum)),
                maximum=np.maximum(spec.maximum, np.zeros_like(spec.maximum)),
            )

        holds_zeros = self._length > 1 and not self._tile_first
        observation = tree.map_structure(
            lambda spec: lengthen(spec, holds_zeros), self._inner_observation_spec
        )
        if not self._include_actions:
            return observation
        action = tree.map_structure(
            lambda spec: lengthen(spec, True), self._env.action_spec()
        )
        return {"observation": observation, "action": action}

    def _zeros(self, specs: Any) -> list[np.ndarray]:
        return [
            np.zeros((*self._outer_shape, self._length, *spec.shape), spec.dtype)
            for spec in tree.flatten(specs)
        ]

    def _get_wrapper_state(self) -> Any:
        # These arrays are never written to: each step makes new ones.
        return list(self._observations), list(self._actions)

    def _set_wrapper_state(self, state: Any) -> None:
        observations, actions = state
        self._observations, self._actions = list(observations), list(actions)

    def _reset(self) -> ts.TimeStep:
        no_action = [history.take(0, self._axis) for history in self._actions]
        return self._observe(self._env.reset(), no_action)

    def _step(self, action: Any) -> ts.TimeStep:
        flat = self._check_action(action)
        return self._observe(self._env.step(action), flat)

    def _observe(self, time_step: ts.TimeStep, action: list[np.ndarray]) -> Any:
        first = np.asarray(time_step.is_first())
        observation = [
            base.as_declared(leaf, spec.dtype)
            for leaf, spec in zip(
                tree.flatten_up_to(self._inner_observation_spec, time_step.observation),
                tree.flatten(self._inner_observation_spec),
                strict=True,
            )
        ]
        self._observations = [
            self._append(history, value, first, self._tile_first)
            for history, value in zip(self._observations, observation, strict=True)
        ]
        self._actions = [
            self._append(history, _zero_where(first, value), first, False)
            for history, value in zip(self._actions, action, strict=True)
        ]
        return time_step._replace(observation=self._packed())

    def _append(
        self, history: np.ndarray, value: np.ndarray, first: np.ndarray, tile: bool
    ) -> np.ndarray:
        """Returns the history with `value` at its end; `first` starts a new one."""
        value = np.expand_dims(value, self._axis)
        past = history[:, 1:] if self._axis else history[1:]
        if first.any():
            begun = np.broadcast_to(value, past.shape) if tile else np.zeros_like(past)
            past = np.where(_expand(first, past.ndim), begun, past)
        return np.concatenate([past, value], self._axis)

    def _packed(self) -> Any:
        observation = tree.unflatten_as(
            self._inner_observation_spec, self._observations
        )
        if not self._include_actions:
            return observation
        action = tree.unflatten_as(self._env.action_spec(), self._actions)
        return {"observation": observation, "action": action}


def _expand(mask: np.ndarray, rank: int) -> np.ndarray:
    return mask.reshape(mask.shape + (1,) * (rank - mask.ndim))


def _zero_where(mask: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.where(_expand(mask, value.ndim), np.zeros_like(value), value)
