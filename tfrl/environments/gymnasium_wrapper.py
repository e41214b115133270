"""`GymnasiumWrapper` turns one Gymnasium environment into a `PyEnvironment`."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.environments.boundary import action_arrays, leaf_checks
from tfrl.environments.gymnasium import results, state_adapters
from tfrl.specs import array_spec
from tfrl.specs.gym_spaces import spec_from_gym_space
from tfrl.trajectories import time_step as ts
from tfrl.utils import number_checks

__all__ = ["GymnasiumWrapper", "check_discount", "spec_from_gym_space"]


class GymnasiumWrapper(py_environment.PyEnvironment):
    """A `gymnasium.Env` as a `PyEnvironment`, with specs made from its spaces.

    `terminated` becomes a LAST step with discount 0, with or without `truncated`;
    `truncated` alone becomes a LAST step that keeps its discount. Attributes that are
    not found here are looked up in the Gymnasium environment and its wrappers.
    """

    def __init__(
        self,
        gym_env: gymnasium.Env,
        discount: float = 1.0,
        spec_dtype_map: Mapping[type, Any] | None = None,
        match_obs_space_dtype: bool = True,
        auto_reset: bool = True,
        simplify_box_bounds: bool = True,
        render_kwargs: Mapping[str, Any] | None = None,
        *,
        reward_spec: array_spec.ArraySpec | None = None,
    ):
        """Wraps `gym_env`.

        Args:
          gym_env: The environment to wrap.
          discount: The discount of every step but the first and a termination.
          spec_dtype_map: Maps classes of spaces to the dtypes of their specs; see
            `spec_from_gym_space`.
          match_obs_space_dtype: Whether observations are copied and cast to the dtypes
            of their specs.
          auto_reset: Whether the step after a LAST step resets.
          simplify_box_bounds: Whether equal bounds of a Box become one number.
          render_kwargs: Keyword arguments for the environment's own `render`.
          reward_spec: The spec of the rewards, for environments whose rewards are
            vectors, such as MO-Gymnasium's; None for one float32 number.

        Raises:
          ValueError: If a space has no spec, or `discount` is outside [0, 1].
        """
        super().__init__(auto_reset)
        check_discount(discount)
        for name in ("observation_space", "action_space"):
            if getattr(gym_env, name, None) is None:
                kind = type(getattr(gym_env, "unwrapped", gym_env)).__name__
                raise ValueError(
                    f"environment: got a {kind} without {name}, expected a space of "
                    f"Gymnasium; set self.{name} in its constructor, such as "
                    "gymnasium.spaces.Box(-1, 1, (4,))."
                )
        self._gym_env = gym_env
        self._stepped_env = _without_order_enforcing(gym_env)
        self._observation_spec = spec_from_gym_space(
            gym_env.observation_space,
            spec_dtype_map,
            simplify_box_bounds,
            "observation",
        )
        self._action_spec = spec_from_gym_space(
            gym_env.action_space, spec_dtype_map, simplify_box_bounds, "action"
        )
        self._reward_spec = reward_spec or super().reward_spec()
        self._reward_shape = self._reward_spec.shape
        self._reward_dtype = self._reward_spec.dtype
        self._discount = _read_only(np.float32(discount))
        self._action_is_discrete = isinstance(
            gym_env.action_space, gymnasium.spaces.Discrete
        )
        self._render_kwargs = dict(render_kwargs or {})
        self._name = py_environment.environment_name(gym_env)
        self._check_action = action_arrays.ActionChecker(self._name, self._action_spec)
        self._action_dtype = getattr(self._action_spec, "dtype", None)
        # Gymnasium's environments require the dtypes of their spaces.
        self._action_dtypes = tree.unflatten_as(
            self._action_spec,
            [space.dtype for space in tree.flatten(gym_env.action_space)],
        )
        self._converts_actions = any(
            spec.dtype != dtype or not spec.shape
            for spec, dtype in zip(
                tree.flatten(self._action_spec),
                tree.flatten(self._action_dtypes),
                strict=True,
            )
        )
        self._to_spec: Callable[[Any], Any] = (
            leaf_checks.NestCopier(self._name, "observation", self._observation_spec)
            if match_obs_space_dtype
            else _unchanged
        )
        self._info: dict[str, Any] | None = None
        self._done = True
        self._was_reset = False
        self._next_seed: int | None = None

    @property
    def gym(self) -> gymnasium.Env:
        """The Gymnasium environment."""
        return self._gym_env

    @property
    def done(self) -> bool:
        """Whether the last step ended the episode, or no episode has begun."""
        return self._done

    def observation_spec(self) -> Any:
        """The nest of specs of the observation space."""
        return self._observation_spec

    def action_spec(self) -> Any:
        """The nest of specs of the action space."""
        return self._action_spec

    def reward_spec(self) -> Any:
        """The spec of the rewards."""
        return self._reward_spec

    def change(self, name: str, value: Any, calls: bool = False) -> None:
        """Sets an attribute of the environment or of a wrapper; see `PyEnvironment`."""
        if not self.gym.has_wrapper_attr(name):
            py_environment.check_attribute(self.gym.unwrapped, name)
        if calls:
            self.gym.get_wrapper_attr(name)(value)
        else:
            self.gym.set_wrapper_attr(name, value)

    def get_info(self) -> Any:
        """Returns Gymnasium's latest `info`; None before the first reset."""
        return self._info

    def seed(self, seed: int) -> int:
        """Seeds the environment at its next reset. Returns `seed`."""
        self._next_seed = int(seed)
        return self._next_seed

    def render(self, mode: str = "rgb_array") -> Any:
        """Returns a picture, or None if the environment shows it in a window.

        An environment that was made for no mode, and whose own `render` takes one as in
        gym, gets the mode.

        Raises:
          ValueError: If the environment was made for another render mode.
        """
        made_for = self._gym_env.render_mode
        own: Any = self._gym_env.unwrapped.render
        if made_for is None and "mode" in inspect.signature(own).parameters:
            return own(mode=mode, **self._render_kwargs)
        if mode != made_for:
            raise ValueError(
                f"render: got mode {mode!r}, expected the mode for which {self._name} "
                f"was made, {made_for!r}; make it with "
                f"gymnasium.make(..., render_mode={mode!r}), or load it with "
                f"suite_gym.load(..., gym_kwargs={{'render_mode': {mode!r}}})."
            )
        return self._gym_env.render(**self._render_kwargs)

    def close(self) -> None:
        """Closes the Gymnasium environment."""
        self._gym_env.close()

    def get_state(self) -> Any:
        """Returns the state of the Gymnasium environment and of its wrappers.

        `state_adapters` lists the classes whose state it knows.

        Raises:
          NotImplementedError: If the state of one of them is not known.
        """
        return {
            "gym": state_adapters.get_state(self._gym_env),
            "info": state_adapters.storable(self._info),
            "done": self._done,
            "next_seed": self._next_seed,
            "time_step": self._copied_time_step(),
        }

    def set_state(self, state: Any) -> None:
        """Restores a state that `get_state` returned, in this process or another.

        Raises:
          NotImplementedError: If a class of `state_adapters` is missing.
          ValueError: If the state belongs to another environment.
        """
        if not self._was_reset:
            # Some environments make their parts in a reset.
            self._reset()
        state_adapters.set_state(self._gym_env, state["gym"])
        self._info = copy.deepcopy(state["info"])
        self._done = state["done"]
        self._next_seed = state["next_seed"]
        self._restore_time_step(state["time_step"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_gym_env" not in self.__dict__:
            raise AttributeError(name)
        return self._gym_env.get_wrapper_attr(name)

    def _reset(self) -> ts.TimeStep:
        try:
            result = self._gym_env.reset(seed=self._next_seed)
        except (TypeError, ValueError) as error:
            self._explain(error, "reset")
            raise
        try:
            observation, self._info = result
        except (TypeError, ValueError):
            raise results.wrong_result("reset", result, self._name) from None
        if not isinstance(self._info, Mapping):
            # With a pair of numbers, `reset` has returned an observation as in the old
            # Gym.
            raise results.wrong_result("reset", result, self._name)
        # Not before: a reset that fails may be tried again.
        self._next_seed = None
        self._done = False
        self._was_reset = True
        return ts.restart(self._to_spec(observation), reward_spec=self._reward_spec)

    def _step(self, action: Any) -> ts.TimeStep:
        if not self._action_is_discrete:
            action = self._check_action.conform(action)
            if self._converts_actions:
                action = tree.map_structure(_as_in_space, action, self._action_dtypes)
        elif (
            isinstance(action, _ARRAYS)
            and action.dtype == self._action_dtype
            and not action.shape
        ):
            action = action.item()
        else:
            action = self._check_action.conform(action).item()
        try:
            result: Any = self._stepped_env.step(action)
        except (AssertionError, LookupError, TypeError, ValueError) as error:
            self._refuse_action(action, error)
            self._explain(error, "step")
            raise
        try:
            observation, reward, terminated, truncated, self._info = result
        except (TypeError, ValueError):
            raise results.wrong_result("step", result, self._name) from None
        if not isinstance(self._info, Mapping):
            raise results.wrong_result("step", result, self._name)
        reward = results.as_array(
            reward, self._reward_shape, self._name, self._reward_dtype
        )
        if type(terminated) not in _BOOLS or type(truncated) not in _BOOLS:
            ends = results.ends(terminated, truncated, (), self._name)
            terminated, truncated = map(bool, ends)
        self._done = bool(terminated or truncated)
        return ts.TimeStep(
            ts.StepType.LAST if self._done else ts.StepType.MID,
            reward,
            _ZERO if terminated else self._discount,
            self._to_spec(observation),
        )

    def _refuse_action(self, action: Any, error: Exception) -> None:
        """Raises an error for an action outside its space, which caused another one."""
        space = self._gym_env.action_space
        if not space.contains(action):
            raise ValueError(
                f"action: got {action!r}, expected one in {space}, the action space of "
                f"{self._name} ({type(error).__name__}: {error}); choose actions "
                "within the bounds of action_spec()."
            ) from error

    def _explain(self, error: Exception, what: str) -> None:
        """Raises a clearer error for an error of Gymnasium's wrappers, if any."""
        explained = results.explain(error, what, self._name)
        if explained is not None:
            raise explained from error


def check_discount(discount: Any) -> None:
    """Raises an error unless the discount of an environment is a number in [0, 1]."""
    number_checks.check_number(
        "discount",
        discount,
        0.0,
        1.0,
        remedy="1 leaves discounting to the gamma of the agent",
    )


def _without_order_enforcing(gym_env: gymnasium.Env) -> gymnasium.Env:
    """Removes Gymnasium's outer wrappers that check the order of calls.

    A `PyEnvironment` resets before its first step, so there is no order to enforce.
    """
    while type(gym_env) is gymnasium.wrappers.OrderEnforcing:
        gym_env = gym_env.env
    return gym_env


def _as_in_space(action: np.ndarray, dtype: np.dtype[Any]) -> Any:
    """Returns a part of an action as its space's samples are."""
    if action.dtype != dtype:
        action = action.astype(dtype)
    # Some environments use an integer as a key, and an array has no hash.
    return action if action.shape or dtype.kind == "f" else action[()]


def _unchanged(observation: Any) -> Any:
    return observation


def _read_only(value: Any) -> np.ndarray:
    array = np.asarray(value)
    array.setflags(write=False)
    return array


_BOOLS = (bool, np.bool_)
_ARRAYS = (np.ndarray, np.generic)
# The time steps share their constants.
_ZERO = _read_only(np.float32(0.0))
