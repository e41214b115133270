"""`Adder`, the interface between an actor and the store of its experience."""

from __future__ import annotations

import abc
from typing import Any


class Adder(abc.ABC):
    """Receives the steps of an actor's episodes, one after the other.

        timestep = environment.reset()
        adder.add_first(timestep)
        while not timestep.last():
            action = policy(timestep.observation)
            timestep = environment.step(action)
            adder.add(action, next_timestep=timestep)

    Time steps are dm_env's or tfrl's: named tuples with `step_type`, `reward`,
    `discount` and `observation`.
    """

    @abc.abstractmethod
    def add_first(self, timestep: Any) -> None:
        """Starts an episode.

        Args:
          timestep: The FIRST time step of the episode.
        """

    @abc.abstractmethod
    def add(self, action: Any, next_timestep: Any, extras: Any = ()) -> None:
        """Adds an action and the time step that it led to.

        A LAST time step ends the episode.

        Args:
          action: The nest of arrays of the action.
          next_timestep: The time step after the action.
          extras: A nest of arrays to store with the step, such as the state of a
            recurrent network before the action.
        """

    @abc.abstractmethod
    def end_episode(self, timeout_ms: int | None = None) -> None:
        """Ends the episode at the time step that was added last, as a truncation.

        Call it if the actor stops in the middle of an episode and the steps so far
        should count. After a LAST time step, the call does nothing.

        Args:
          timeout_ms: The number of milliseconds to wait for the server; None for no
            limit.
        """

    @abc.abstractmethod
    def reset(self, timeout_ms: int | None = None) -> None:
        """Drops the rest of an episode that has not ended.

        Items that have been written are kept. Items that are written later contain no
        steps from before the call.

        Args:
          timeout_ms: See `end_episode`.
        """
