"""An actor and a learner in one, for an `EnvironmentLoop`, as in Acme."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfrl.acme import core
from tfrl.utils import number_checks

if TYPE_CHECKING:
    import dm_env
    import numpy as np

    from tfrl.acme.agents.tf import learning
    from tfrl.typing import types


class Agent(core.Actor):
    """Acts with an actor, and runs learner steps at a fixed ratio to its observations.

    After `n` observations the learner has done

        max(0, ceil((n - min_observations + 1) / observations_per_step))

    steps, if `update` is called after each observation, as an `EnvironmentLoop` does.
    """

    def __init__(
        self,
        actor: core.Actor,
        learner: learning.Learner,
        min_observations: int,
        observations_per_step: float,
    ) -> None:
        """Stores the arguments.

        Args:
          actor: Chooses the actions, and stores the observed steps.
          learner: Does the updates.
          min_observations: The number of observations before the first learner step.
          observations_per_step: The number of observations for each learner step; below
            1 there are several steps for each observation.

        Raises:
          ValueError: A number is out of range.
        """
        number_checks.check_sizes(min_observations=min_observations)
        number_checks.check_number(
            "observations_per_step",
            observations_per_step,
            0,
            excludes_low=True,
            remedy="1 learns once for each observation",
        )
        self._actor = actor
        self._learner = learner
        self._min_observations = min_observations
        self._observations_per_step = observations_per_step
        self._num_observations = 0
        self._num_learner_steps = 0

    @property
    def learner(self) -> learning.Learner:
        """The learner."""
        return self._learner

    def select_action(self, observation: types.NestedArray) -> types.NestedArray:
        """Returns the action for an observation, both without a batch dimension."""
        return self._actor.select_action(observation)

    def observe_first(self, timestep: dm_env.TimeStep) -> None:
        """Takes the first time step of an episode."""
        self._actor.observe_first(timestep)

    def observe(
        self, action: types.NestedArray, next_timestep: dm_env.TimeStep
    ) -> None:
        """Takes an action and the time step that it led to."""
        self._num_observations += 1
        self._actor.observe(action, next_timestep)

    def update(self, wait: bool = False) -> None:
        """Does the learner steps that are due, and then updates the actor.

        Args:
          wait: See `Actor`.
        """
        counted = self._num_observations - self._min_observations + 1
        due = math.ceil(counted / self._observations_per_step)
        if due <= self._num_learner_steps:
            return
        while self._num_learner_steps < due:
            self._learner.step()
            self._num_learner_steps += 1
        self._actor.update(wait)

    def get_variables(self, names: Sequence[str]) -> list[list[np.ndarray]]:
        """Returns the learner's variables; see `Learner.get_variables`."""
        return self._learner.get_variables(names)
