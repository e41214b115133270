"""The interfaces of actors, which an `EnvironmentLoop` calls, and of learners."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import dm_env

if TYPE_CHECKING:
    from tfrl.typing import types


class Saveable(abc.ABC):
    """An object that returns and restores its state as a nest of arrays."""

    @abc.abstractmethod
    def save(self) -> Any:
        """Returns the state.

        The state consists of arrays, numbers, strings, bytes and None, in lists,
        tuples, named tuples and dictionaries.
        """

    @abc.abstractmethod
    def restore(self, state: Any) -> None:
        """Restores a state that `save` returned."""


class Actor(abc.ABC):
    """Chooses actions, and observes the time steps after them.

    `EnvironmentLoop` makes these calls for each episode::

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
        """Lets the actor fetch weights, or learn.

        Args:
          wait: Whether to return only when the actor has done so.
        """


class VariableSource(abc.ABC):
    """Provides the variables of networks, such as to an actor's `VariableClient`."""

    @abc.abstractmethod
    def get_variables(self, names: Sequence[str]) -> list[Any]:
        """Returns the variables of each name, as nests of arrays.

        Args:
          names: Names that the source knows, such as `["policy"]`.
        """


class Worker(abc.ABC):
    """Runs independently, for example in its own process."""

    @abc.abstractmethod
    def run(self) -> Any:
        """Runs until the work is done."""


class Learner(VariableSource, Worker, Saveable):
    """Updates networks, step after step; a subclass writes `step`."""

    @abc.abstractmethod
    def step(self) -> Any:
        """Does one update."""

    def run(self, num_steps: int | None = None) -> None:
        """Does a number of updates; without one, it runs forever."""
        for _ in itertools.count() if num_steps is None else range(num_steps):
            self.step()

    def save(self) -> Any:
        """Returns the learner's state; optional for subclasses."""
        raise NotImplementedError(
            f"{type(self).__name__}.save: this learner does not give its state; write "
            "save and restore, or save its networks with a Checkpointer."
        )

    def restore(self, state: Any) -> None:
        """Restores a state that `save` returned; optional for subclasses."""
        raise NotImplementedError(
            f"{type(self).__name__}.restore: this learner does not take a state; write "
            "save and restore, or restore its networks with a Checkpointer."
        )
