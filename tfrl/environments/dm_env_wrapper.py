"""`DmEnvWrapper` turns a dm_env environment, such as Acme's, into a `PyEnvironment`.

`py_to_dm_wrapper.PyToDMWrapper` is the inverse.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.environments.boundary import action_arrays, leaf_checks
from tfrl.specs import dm_env_specs
from tfrl.trajectories import time_step as ts
from tfrl.utils import mixins

# Maps dm_env's step types to ours.
STEP_TYPES = (ts.StepType.FIRST, ts.StepType.MID, ts.StepType.LAST)


class DmEnvWrapper(mixins.Forwards, py_environment.PyEnvironment):
    """A `dm_env.Environment` as a `PyEnvironment`, with its specs converted.

    Both interfaces have FIRST, MID and LAST steps, and a LAST step that keeps its
    discount if the episode was truncated. The reward and discount of a FIRST step, None
    in dm_env, become 0 and 1; rewards and discounts are float32. Attributes that are
    not found here are looked up in the dm_env environment; `seed`, `get_info`,
    `get_state` and `set_state` work if that environment has such methods.
    """

    def __init__(
        self,
        env: Any,
        spec_dtype_map: Mapping[Any, Any] | None = None,
        handle_auto_reset: bool = True,
    ):
        """Wraps `env`.

        Args:
          env: The `dm_env.Environment`.
          spec_dtype_map: Maps dtypes of its specs to the dtypes of observations and
            actions here, such as `{np.float64: np.float32}`; other dtypes stay.
          handle_auto_reset: See `PyEnvironment`; dm_env's environments also reset
            themselves.

        Raises:
          TypeError: If `env` is not a dm_env environment.
          ValueError: If one of its specs cannot be converted.
        """
        super().__init__(handle_auto_reset)
        _check_is_dm_env(env)
        self._env = env
        dtypes = {
            np.dtype(old): np.dtype(new) for old, new in (spec_dtype_map or {}).items()
        }
        self._observation_spec = convert_specs(env.observation_spec(), dtypes)
        self._action_spec = convert_specs(env.action_spec(), dtypes)
        self._dm_action_spec = env.action_spec()
        self._reward_spec = _as_float32(env.reward_spec())
        self._discount_spec = _as_float32(env.discount_spec())
        name = py_environment.environment_name(env)
        self._check_action = action_arrays.ActionChecker(name, self._action_spec)
        self._copiers = [
            leaf_checks.NestCopier(name, field, spec)
            for field, spec in (
                ("reward", self._reward_spec),
                ("discount", self._discount_spec),
                ("observation", self._observation_spec),
            )
        ]

    @property
    def dm_env(self) -> Any:
        """The dm_env environment."""
        return self._env

    def observation_spec(self) -> Any:
        """The nest of specs of the observations."""
        return self._observation_spec

    def action_spec(self) -> Any:
        """The nest of specs of the actions."""
        return self._action_spec

    def reward_spec(self) -> Any:
        """The nest of specs of the rewards, float32."""
        return self._reward_spec

    def discount_spec(self) -> Any:
        """The spec of the discount, float32."""
        return self._discount_spec

    def seed(self, seed: Any) -> Any:
        """Seeds the dm_env environment, if it has a method `seed`."""
        own = getattr(self._env, "seed", None)
        return super().seed(seed) if own is None else own(seed)

    def change(self, name: str, value: Any, calls: bool = False) -> None:
        """Sets an attribute of dm_env's environment; see `PyEnvironment.change`."""
        py_environment.change_attribute(self._env, name, value, calls=calls)

    def get_info(self) -> Any:
        """Returns the result of the environment's own `get_info`, if it has one."""
        own = getattr(self._env, "get_info", None)
        return super().get_info() if own is None else own()

    def get_state(self) -> Any:
        """Returns the state of the environment, if it has a method `get_state`."""
        own, _ = self._state_methods()
        if own is None:
            return super().get_state()
        return {"dm_env": own(), "time_step": self._copied_time_step()}

    def set_state(self, state: Any) -> None:
        """Restores a state that `get_state` returned, by a method `set_state`."""
        _, own = self._state_methods()
        if own is None:
            super().set_state(state)
            return
        own(state["dm_env"])
        self._restore_time_step(state["time_step"])

    def _state_methods(self) -> tuple[Any, Any]:
        """Returns the functions that read and set the environment's state, or None."""
        names = ("get_state", "set_state")
        read, write = (getattr(self._env, name, None) for name in names)
        return read, write

    def close(self) -> None:
        """Closes the dm_env environment."""
        self._env.close()

    def _reset(self) -> ts.TimeStep:
        return self._convert(self._env.reset())

    def _step(self, action: Any) -> ts.TimeStep:
        action = tree.map_structure_up_to(
            self._dm_action_spec,
            # Scalars, not arrays without dimensions, which cannot be hashed.
            lambda spec, value: np.array(value, spec.dtype)[()],
            self._dm_action_spec,
            self._check_action.conform(action),
        )
        return self._convert(self._env.step(action))

    def _convert(self, time_step: Any) -> ts.TimeStep:
        copy_reward, copy_discount, copy_observation = self._copiers
        step_type = STEP_TYPES[int(time_step.step_type)]
        if step_type is ts.StepType.FIRST:
            reward = tree.map_structure(
                lambda spec: np.zeros(spec.shape, spec.dtype), self._reward_spec
            )
            discount = np.ones(self._discount_spec.shape, self._discount_spec.dtype)
        else:
            reward = copy_reward(time_step.reward)
            discount = copy_discount(time_step.discount)
        observation = copy_observation(time_step.observation)
        return ts.TimeStep(step_type, reward, discount, observation)


def _check_is_dm_env(env: Any) -> None:
    methods = ("reset", "step", "observation_spec", "action_spec", "reward_spec")
    missing = [name for name in methods if not callable(getattr(env, name, None))]
    if missing or isinstance(env, py_environment.PyEnvironment):
        raise TypeError(
            f"env: got {env!r} of type {type(env).__name__}, expected a "
            "dm_env.Environment; a PyEnvironment needs no wrapper, and "
            "suite_gym.wrap_env takes Gymnasium's environments."
        )


def convert_specs(specs: Any, dtypes: Mapping[Any, Any]) -> Any:
    """Converts dm_env's specs to array specs, and their dtypes as `dtypes` says.

    Raises:
      ValueError: If a leaf of the nest is not a spec of dm_env.
    """
    return tree.map_structure(
        lambda spec: spec.replace(dtype=dtypes.get(spec.dtype, spec.dtype)),
        dm_env_specs.from_dm_env_spec(specs),
    )


def _as_float32(specs: Any) -> Any:
    return tree.map_structure(
        lambda spec: spec.replace(dtype=np.float32),
        dm_env_specs.from_dm_env_spec(specs),
    )
