"""Joins the spaces of several agents to one, so that one policy acts for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from tfrl.environments.observation_parts import CRITIC, MASK, NUMBER, OBSERVATION


class JointSpaces:
    """The spaces of an agent of any number, and what agents see and do in them.

    Equal spaces stay as they are. Vectors of different lengths are padded with zeros,
    and of different numbers of choices the largest is taken, with masks of those that
    an agent has. Agents then see their own numbers, too.

    Attributes:
      observation_space: The space of every agent's observation.
      action_space: The space of every agent's action.
    """

    def __init__(
        self,
        observation_spaces: Sequence[spaces.Space],
        action_spaces: Sequence[spaces.Space],
        *,
        sees_number: bool = False,
        state_size: int | None = None,
    ) -> None:
        """Joins spaces.

        Args:
          observation_spaces: The space of each agent's observation.
          action_spaces: The space of each agent's action.
          sees_number: Whether agents see their own numbers, as one-hot vectors.
          state_size: The numbers of a state that critics see instead of observations;
            None if they see observations.

        Raises:
          ValueError: The spaces are of different kinds.
        """
        self._number = len(observation_spaces)
        seen, self._lengths = _joined("observation", observation_spaces)
        self.action_space, self._sizes = _joined("action", action_spaces)
        is_padded = self._lengths is not None or self._sizes is not None
        self._sees_number = sees_number or is_padded
        self._masks: np.ndarray | None = None
        if self._sizes is not None and isinstance(self.action_space, spaces.Discrete):
            choices = np.arange(self.action_space.n)
            self._masks = (choices < np.asarray(self._sizes)[:, np.newaxis]).astype(
                np.int8
            )
        one_hot = spaces.Box(0.0, 1.0, (self._number,), np.float32)
        added: dict[str, spaces.Space] = {NUMBER: one_hot} if self._sees_number else {}
        if self._masks is not None:
            added[MASK] = spaces.MultiBinary(int(self.action_space.n))
        if state_size is not None:
            shape = (state_size + self._number,)
            added[CRITIC] = spaces.Box(-np.inf, np.inf, shape, np.float32)
        self._is_dict = isinstance(seen, spaces.Dict)
        parts = dict(seen.spaces) if self._is_dict else {OBSERVATION: seen}
        both = parts.keys() & added.keys()
        if both:
            raise ValueError(
                f"observation_spaces: got dicts with {sorted(both)}, expected other "
                "names, since these parts are added here; rename them."
            )
        self._adds = bool(added)
        self._critics_see_state = state_size is not None
        self.observation_space = spaces.Dict({**parts, **added}) if added else seen
        self._one_hot = np.eye(self._number, dtype=np.float32)

    def observation(self, agent: int, observation: Any, state: Any = None) -> Any:
        """Returns an agent's observation in the joint space.

        Args:
          agent: The agent's number.
          observation: Its observation.
          state: The state that critics see, `[state_size]`.
        """
        if self._lengths is not None:
            short = np.asarray(observation, np.float32)
            observation = np.zeros(max(self._lengths), np.float32)
            observation[: len(short)] = short
        if not self._adds:
            return observation
        parts = dict(observation) if self._is_dict else {OBSERVATION: observation}
        if self._sees_number:
            parts[NUMBER] = self._one_hot[agent]
        if self._masks is not None:
            parts[MASK] = self._masks[agent]
        if self._critics_see_state:
            parts[CRITIC] = np.concatenate([state, self._one_hot[agent]])
        return parts

    def action(self, agent: int, action: Any) -> Any:
        """Returns an agent's action in its own space, for one in the joint space."""
        if self._sizes is None:
            return action
        size = self._sizes[agent]
        if isinstance(self.action_space, spaces.Discrete):
            # Random actions of a program may be illegal ones.
            return min(int(action), size - 1)
        return action[:size]


def _joined(what: str, each: Sequence[Any]) -> tuple[Any, Sequence[int] | None]:
    """Returns the joint space, and the agents' sizes if these differ.

    Args:
      what: What the spaces are of, for the error.
      each: The spaces.
    """
    if all(space == each[0] for space in each):
        return each[0], None
    if all(_is_vector(space) for space in each):
        sizes = [space.shape[0] for space in each]
        size = max(sizes)
        low, high = (
            [np.pad(getattr(x, bound), (0, size - len(x.low))) for x in each]
            for bound in ("low", "high")
        )
        if what == "action":
            # Numbers of another agent's action alone keep that agent's bounds.
            owned = np.arange(size) < np.asarray(sizes)[:, np.newaxis]
            low = [np.where(o, x, np.inf) for o, x in zip(owned, low, strict=True)]
            high = [np.where(o, x, -np.inf) for o, x in zip(owned, high, strict=True)]
        bounds = np.min(low, axis=0), np.max(high, axis=0)
        return spaces.Box(*(x.astype(np.float32) for x in bounds)), sizes
    if what == "action" and all(_is_choice(space) for space in each):
        sizes = [int(space.n) for space in each]
        return spaces.Discrete(max(sizes)), sizes
    shown = ", ".join(dict.fromkeys(map(str, each)))
    raise ValueError(
        f"{what}_spaces: got {shown}, expected equal spaces, or vectors of floats, or "
        "single choices, for one policy that acts for all agents; wrap the environment "
        "so that they are, or train the kinds of agents one after the other."
    )


def _is_vector(space: Any) -> bool:
    is_box = isinstance(space, spaces.Box)
    return is_box and len(space.shape) == 1 and np.issubdtype(space.dtype, np.floating)


def _is_choice(space: spaces.Space) -> bool:
    return isinstance(space, spaces.Discrete) and int(space.start) == 0


def has_own_mask(space: spaces.Space) -> bool:
    """Whether observations hold masks of actions of their own."""
    return isinstance(space, spaces.Dict) and MASK in space.spaces


def mended_mask(observation: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an observation in which some action is legal.

    In a game of turns nothing is legal for those who wait, whose actions are ignored.
    """
    mask = np.asarray(observation[MASK])
    return {**observation, MASK: mask if mask.any() else np.ones_like(mask)}
