"""Masks of legal actions that Gymnasium's environments tell outside of observations.

The key `action_mask` of `info` is PettingZoo's and Gymnasium's convention, the method
`action_masks` that of sb3-contrib's MaskablePPO.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from tfrl.environments import observation_parts
from tfrl.environments.gymnasium import state_adapters

KEY = observation_parts.MASK
_METHOD = "action_masks"


def with_mask(env: gymnasium.Env) -> gymnasium.Env:
    """Returns an environment of one discrete action with its mask in the observation.

    An environment without masks is returned unchanged, and so are Gymnasium's own,
    whose masks are hints about actions that they accept. To see the infos, this resets
    an environment that does not have the method.
    """
    space = env.observation_space
    is_known = type(env.unwrapped).__module__.startswith("gymnasium.")
    has_mask = isinstance(space, gymnasium.spaces.Dict) and KEY in space.spaces
    if is_known or has_mask or not isinstance(env.action_space, _ONE):
        return env
    if env.has_wrapper_attr(_METHOD):
        return MaskedObservations(env)
    result = env.reset()
    infos = result[1] if isinstance(result, tuple) and len(result) == 2 else None
    is_told = isinstance(infos, Mapping) and KEY in infos
    return MaskedObservations(env) if is_told else env


class MaskedObservations(gymnasium.Wrapper):
    """Adds the mask of legal actions to each observation, as `action_mask`.

    The other part of the observation is `observation`, unless it is a dict already.
    """

    def __init__(self, env: gymnasium.Env) -> None:
        """Wraps an environment with the method, or with masks in its infos."""
        super().__init__(env)
        assert isinstance(env.action_space, _ONE)
        self._mask_space = gymnasium.spaces.MultiBinary(int(env.action_space.n))
        self.observation_space = gymnasium.spaces.Dict(
            self._joined(env.observation_space, self._mask_space)
        )

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Resets the environment; adds the mask."""
        observation, info = self.env.reset(**kwargs)
        return self._joined(observation, self._mask(info)), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps the environment; adds the mask."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        mask = self._mask(info, is_last=bool(terminated or truncated))
        return self._joined(observation, mask), reward, terminated, truncated, info

    def _joined(self, observation: Any, mask: Any) -> dict[str, Any]:
        """Returns the parts of an observation, or of a space, and the mask."""
        parts = getattr(observation, "spaces", observation)
        is_dict = isinstance(self.env.observation_space, gymnasium.spaces.Dict)
        own = {observation_parts.OBSERVATION: observation}
        return {**(parts if is_dict else own), KEY: mask}

    def _mask(self, info: Mapping[str, Any], *, is_last: bool = False) -> np.ndarray:
        # Asked at each step, so that a copy of this wrapper asks its own environment.
        has_method = self.env.has_wrapper_attr(_METHOD)
        read = self.env.get_wrapper_attr(_METHOD)() if has_method else info.get(KEY)
        mask = np.asarray(read)
        if is_last and (mask.shape == () or not mask.any()):
            return np.ones(self._mask_space.shape, np.int8)  # No action follows.
        if mask.shape != self._mask_space.shape or not np.isin(mask, (0, 1)).all():
            raise ValueError(
                f"{KEY}: got {mask!r}, expected 0 or 1 for each of the "
                f"{self._mask_space.n} actions; return such a mask at each step."
            )
        if not mask.any():
            raise ValueError(
                f"{KEY}: got no legal action, expected at least one; end the episode."
            )
        return mask.astype(np.int8)


_ONE = gymnasium.spaces.Discrete
state_adapters.register(MaskedObservations)  # The environment knows the mask.
