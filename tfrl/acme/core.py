"""`Actor`, what an `EnvironmentLoop` drives, as in Acme."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

import dm_env

from tfrl.savers.saveable import Saveable as Saveable

if TYPE_CHECKING:
    from tfrl.typing import types


class Actor(abc.ABC):
    """Chooses actions and is told what came of them.

    `EnvironmentLoop` calls it so, for each episode::

        timestep = environment.reset()
        actor.observe_first(timestep)
        while not timestep.last():
            action = actor.select_action(timestep.observation)
            timestep = environment.step(action)
            actor.observe(action, next_timestep=timestep)
            actor.update()

    `tfrl.acme.agents.tf.actors` has actors that run a network or a policy of tfrl.
    """

    @abc.abstractmethod
    def select_action(self, observation: types.NestedArray) -> types.NestedArray:
        """Returns the action for an observation, both without a batch dimension."""

    @abc.abstractmethod
    def observe_first(self, timestep: dm_env.TimeStep) -> Any:
        """Takes the first time step of an episode."""

    @abc.abstractmethod
    def observe(self, action: types.NestedArray, next_timestep: dm_env.TimeStep) -> Any:
        """Takes an action and the time step that it led to."""

    @abc.abstractmethod
    def update(self, wait: bool = False) -> Any:
        """Lets the actor change: fetch weights, or learn.

        Args:
          wait: Whether to return only after the change.
        """
