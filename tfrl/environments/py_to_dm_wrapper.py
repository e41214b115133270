"""`PyToDMWrapper` turns a `PyEnvironment` into a dm_env environment, for Acme's code.

`dm_env_wrapper.DmEnvWrapper` is the inverse.
"""

from __future__ import annotations

from typing import Any

import dm_env
import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.specs import dm_env_specs
from tfrl.utils import mixins


class PyToDMWrapper(mixins.Forwards, dm_env.Environment):
    """Steps a single `PyEnvironment` through dm_env's interface.

    A FIRST step has reward and discount None, as dm_env requires; in other steps they
    are NumPy's scalars, or arrays for vectors. After a LAST step and before any reset,
    `step` ignores its action and resets, even if the environment's `handle_auto_reset`
    is off. Attributes that are not found here are looked up in the environment.
    """

    _forwards_to = "_environment"

    def __init__(self, env: py_environment.PyEnvironment):
        """Wraps `env`.

        Args:
          env: The environment, not batched.

        Raises:
          TypeError: If `env` is not a `PyEnvironment`.
          NotImplementedError: If it is batched.
        """
        if not isinstance(env, py_environment.PyEnvironment):
            raise TypeError(
                f"env: got {env!r} of type {type(env).__name__}, expected a "
                "PyEnvironment; wrap a Gymnasium environment with suite_gym.wrap_env."
            )
        if env.batched:
            raise NotImplementedError(
                f"env: got a batched environment (batch_size {env.batch_size}), "
                "expected a single one, because dm_env has no batches; wrap each "
                "member."
            )
        self._environment = env
        self._was_reset = False
        self._observation_spec = dm_env_specs.to_dm_env_spec(env.observation_spec())
        self._action_spec = dm_env_specs.to_dm_env_spec(env.action_spec())
        self._reward_spec = dm_env_specs.to_dm_env_spec(env.reward_spec())
        self._discount_spec = dm_env_specs.to_dm_env_spec(env.discount_spec())

    @property
    def environment(self) -> py_environment.PyEnvironment:
        """The wrapped environment."""
        return self._environment

    def reset(self) -> dm_env.TimeStep:
        """Starts a new episode and returns its FIRST step."""
        self._was_reset = True
        return self._convert(self._environment.reset())

    def step(self, action: Any) -> dm_env.TimeStep:
        """Applies `action`, or resets before the first episode and after each one."""
        if self._was_reset and not self._has_ended():
            return self._convert(self._environment.step(action))
        return self.reset()

    def observation_spec(self) -> Any:
        """The nest of dm_env specs of the observations."""
        return self._observation_spec

    def action_spec(self) -> Any:
        """The nest of dm_env specs of the actions."""
        return self._action_spec

    def reward_spec(self) -> Any:
        """The nest of dm_env specs of the rewards."""
        return self._reward_spec

    def discount_spec(self) -> Any:
        """The dm_env spec of the discount."""
        return self._discount_spec

    def close(self) -> None:
        """Closes the wrapped environment."""
        self._environment.close()

    def _has_ended(self) -> bool:
        # Not kept here: `set_state` of the environment goes to other episodes.
        return bool(np.all(self._environment.current_time_step().is_last()))

    def _convert(self, time_step: Any) -> dm_env.TimeStep:
        step_type = dm_env.StepType(int(np.asarray(time_step.step_type)))
        is_first = step_type.first()
        return dm_env.TimeStep(
            step_type=step_type,
            reward=None if is_first else _numbers(self._reward_spec, time_step.reward),
            discount=(
                None if is_first else _numbers(self._discount_spec, time_step.discount)
            ),
            observation=time_step.observation,
        )


def _numbers(specs: Any, values: Any) -> Any:
    """Casts values to the dtypes of specs; values without dimensions become scalars."""
    return tree.map_structure(
        lambda spec, value: np.asarray(value, spec.dtype)[()], specs, values
    )
