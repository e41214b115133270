"""The calls that adders had in the first release of Acme."""

from __future__ import annotations

import concurrent.futures
from typing import Any, NamedTuple

import dm_env
import numpy as np
import tree

from tfrl.acme.adders import base


class _Step(NamedTuple):
    action: Any
    reward: Any
    discount: Any
    extras: Any


class EarlyAdder:
    """Gives an adder the methods of Acme's first release.

        adder = EarlyAdder(NStepTransitionAdder(client, n_step=5, discount=0.99))

        timestep = environment.reset()
        while not timestep.last():
            action = policy(timestep)
            new_timestep = environment.step(action)
            adder.add(
                timestep.observation, action, new_timestep.reward, new_timestep.discount
            )
            timestep = new_timestep
        adder.end_episode(new_timestep.observation)

    Here, `add` takes the observation before the action. So the adder passes a step on
    when the next call gives the observation after the step. Only one thread may use an
    `EarlyAdder`.
    """

    def __init__(self, adder: base.Adder) -> None:
        """Stores the adder.

        Args:
          adder: The adder that receives the steps.
        """
        self._adder = adder
        self._step: _Step | None = None
        self._executor: concurrent.futures.ThreadPoolExecutor | None = None
        self._pending: concurrent.futures.Future[None] | None = None

    def add(
        self,
        observation: Any,
        action: Any,
        reward: Any,
        discount: Any,
        extras: Any = (),
    ) -> None:
        """Adds a step; the first call after an episode's end starts an episode.

        Args:
          observation: The nest of observations before the action.
          action: The nest of the action.
          reward: The reward for the action.
          discount: The environment's discount after the action.
          extras: A nest of arrays to store with the step.

        Raises:
          ValueError: If the data does not match earlier steps' data or the signature
            of a table.
          Exception: The error of an earlier call of `add_async` or `end_episode_async`.
        """
        self._wait()
        self._add(observation, _Step(action, reward, discount, extras))

    def end_episode(self, observation: Any) -> None:
        """Ends the episode.

        The discount of the last step says whether it was a termination (0) or a
        truncation.

        Args:
          observation: The nest of observations after the last action.

        Raises:
          ValueError: If no step has been added.
          Exception: See `add`.
        """
        self._wait()
        self._end_episode(observation)

    def add_async(
        self,
        observation: Any,
        action: Any,
        reward: Any,
        discount: Any,
        extras: Any = (),
    ) -> concurrent.futures.Future[None]:
        """Adds a step without waiting for the server; for the arguments see `add`.

        Returns:
          A future that completes when the step is added. The next call of `add`,
          `end_episode` or `reset` waits for it, and raises its error.
        """
        copied = tree.map_structure(
            np.array, (observation, action, reward, discount, extras)
        )
        return self._submit(self._add, copied[0], _Step(*copied[1:]))

    def end_episode_async(self, observation: Any) -> concurrent.futures.Future[None]:
        """Ends the episode without waiting for the server; see `end_episode`.

        Returns:
          A future; see `add_async`.
        """
        return self._submit(
            self._end_episode, tree.map_structure(np.array, observation)
        )

    def reset(self, timeout_ms: int | None = None) -> None:
        """Drops the rest of an episode that has not ended; see `Adder`."""
        try:
            self._wait()
        finally:
            self._step = None
            self._adder.reset(timeout_ms)

    def _add(self, observation: Any, step: _Step) -> None:
        if self._step is None:
            self._adder.add_first(
                dm_env.TimeStep(dm_env.StepType.FIRST, None, None, observation)
            )
        else:
            self._pass_on(dm_env.StepType.MID, observation)
        self._step = step

    def _end_episode(self, observation: Any) -> None:
        if self._step is None:
            raise ValueError(
                "end_episode: got the end of an episode without steps; call add before."
            )
        self._pass_on(dm_env.StepType.LAST, observation)

    def _pass_on(self, step_type: dm_env.StepType, observation: Any) -> None:
        """Passes the last step on, with the observation after it."""
        assert self._step is not None
        action, reward, discount, extras = self._step
        self._step = None  # After an error, the next call starts an episode.
        self._adder.add(
            action, dm_env.TimeStep(step_type, reward, discount, observation), extras
        )

    def _submit(self, function: Any, *args: Any) -> concurrent.futures.Future[None]:
        if self._executor is None:
            self._executor = concurrent.futures.ThreadPoolExecutor(
                max_workers=1, thread_name_prefix="tfrl-adder"
            )
        before = self._pending

        def run() -> None:
            if before is not None:
                before.result()  # Nothing follows a step that was not added.
            function(*args)

        self._pending = self._executor.submit(run)
        return self._pending

    def _wait(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()
