"""`EnvironmentWrapper`, which passes all calls on to a dm_env environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dm_env
import numpy as np
import tree

from tfrl.typing import types
from tfrl.utils import mixins


class EnvironmentWrapper(mixins.Forwards, dm_env.Environment):
    """Passes all calls to the wrapped environment; subclasses change some of them.

    Attributes that are not found here are looked up in the wrapped environment, so the
    outermost wrapper has the attributes of the whole chain.
    """

    _forwards_to = "_environment"

    def __init__(self, environment: dm_env.Environment):
        """Wraps `environment`.

        Args:
          environment: The environment.

        Raises:
          TypeError: If `environment` is not a dm_env environment.
        """
        if not isinstance(environment, dm_env.Environment):
            raise TypeError(
                f"environment: got {environment!r} of type "
                f"{type(environment).__name__}, expected a dm_env.Environment; wrap "
                "one of Gymnasium in tfrl.acme.wrappers.GymWrapper and a PyEnvironment "
                "in tfrl.environments.PyToDMWrapper first."
            )
        self._environment = environment

    @property
    def environment(self) -> dm_env.Environment:
        """The wrapped environment."""
        return self._environment

    def reset(self) -> dm_env.TimeStep:
        """Starts an episode and returns its FIRST step."""
        return self._changed(self._environment.reset())

    def step(self, action: types.NestedArray) -> dm_env.TimeStep:
        """Applies `action`, or starts an episode after a LAST step."""
        return self._changed(self._environment.step(action))

    def _changed(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
        """Returns what becomes of a time step of the wrapped environment."""
        return timestep

    def observation_spec(self) -> Any:
        """The nest of specs of the observations."""
        return self._environment.observation_spec()

    def action_spec(self) -> Any:
        """The nest of specs of the actions."""
        return self._environment.action_spec()

    def reward_spec(self) -> Any:
        """The nest of specs of the rewards."""
        return self._environment.reward_spec()

    def discount_spec(self) -> Any:
        """The nest of specs of the discount."""
        return self._environment.discount_spec()

    def close(self) -> None:
        """Closes the wrapped environment."""
        self._environment.close()


class EpisodeWrapper(EnvironmentWrapper):
    """Base of wrappers that begin each episode themselves.

    A step after a LAST step, or before the first episode, calls `reset`. So a wrapped
    environment begins an episode only through `_reset`.
    """

    def __init__(self, environment: dm_env.Environment):
        """Wraps `environment`.

        Args:
          environment: The environment.
        """
        super().__init__(environment)
        self._reset_next_step = True

    def reset(self) -> dm_env.TimeStep:
        """Starts an episode and returns its FIRST step."""
        return self._remember_end(self._reset())

    def step(self, action: types.NestedArray) -> dm_env.TimeStep:
        """Applies `action`, or starts an episode after a LAST step."""
        if self._reset_next_step:
            return self.reset()
        return self._remember_end(self._step(action))

    def _reset(self) -> dm_env.TimeStep:
        return super().reset()

    def _step(self, action: types.NestedArray) -> dm_env.TimeStep:
        return super().step(action)

    def _remember_end(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
        self._reset_next_step = timestep.last()
        return timestep


class ObservationWrapper(EnvironmentWrapper):
    """Base of wrappers that change each observation independently of earlier ones."""

    def _changed(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
        return timestep._replace(observation=self._observation(timestep.observation))

    def _observation(self, observation: types.NestedArray) -> types.NestedArray:
        """Maps an observation of the wrapped environment to this wrapper's."""
        raise NotImplementedError


def wrap_all(
    environment: dm_env.Environment,
    wrappers: Sequence[Callable[[dm_env.Environment], dm_env.Environment]],
) -> dm_env.Environment:
    """Applies wrappers one after another; the first one is the innermost."""
    for wrapper in wrappers:
        environment = wrapper(environment)
    return environment


def cast(values: types.NestedArray, specs: Any) -> types.NestedArray:
    """Returns `values` as arrays of the structure and the dtypes of `specs`."""
    return tree.map_structure_up_to(
        specs, lambda spec, value: np.asarray(value, spec.dtype), specs, values
    )
