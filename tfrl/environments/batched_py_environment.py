"""`BatchedPyEnvironment`: several Python environments as one batched environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any

import numpy as np

from tfrl.environments import py_environment
from tfrl.environments.boundary import members
from tfrl.environments.boundary.members import unstack_actions
from tfrl.trajectories import time_step as ts

__all__ = ["BatchedPyEnvironment", "unstack_actions"]


class BatchedPyEnvironment(py_environment.PyEnvironment):
    """Steps its members one after the other, or each on its own thread.

    Each member resets itself when its own episode has ended. An exception of a member
    is raised with its own type and a note that names the member. If several members
    raise, the exception of the first one is raised.
    """

    # Each member keeps its own current time step, and resets when it has none.
    _current_time_step: Any = ()

    def __init__(
        self, envs: Sequence[py_environment.PyEnvironment], multithreading: bool = True
    ):
        """Batches `envs`.

        Args:
          envs: Environments with equal specs, none of them batched.
          multithreading: Whether each member is called on its own thread.

        Raises:
          ValueError: If `envs` is empty, a member is batched, or their specs differ.
        """
        super().__init__(handle_auto_reset=False)
        self._envs = list(envs)
        if not self._envs or any(env.batched for env in self._envs):
            raise ValueError(
                f"envs: got {envs!r}, expected at least one environment and no batched "
                "one; give the single environments."
            )
        members.check_equal_specs(
            "envs",
            [env.time_step_spec() for env in self._envs],
            [env.action_spec() for env in self._envs],
        )
        self._closed = False
        # Unlike a multiprocessing pool, this pool gives no warning if it is left open.
        self._threads = (
            futures.ThreadPoolExecutor(len(self._envs)) if multithreading else None
        )

    @property
    def batched(self) -> bool:
        """Always True: there is a batch dimension."""
        return True

    @property
    def batch_size(self) -> int:
        """How many members there are."""
        return len(self._envs)

    @property
    def envs(self) -> list[py_environment.PyEnvironment]:
        """The members."""
        return self._envs

    def observation_spec(self) -> Any:
        """The specs of one member's observations."""
        return self._envs[0].observation_spec()

    def action_spec(self) -> Any:
        """The specs of one member's actions."""
        return self._envs[0].action_spec()

    def reward_spec(self) -> Any:
        """The specs of one member's rewards."""
        return self._envs[0].reward_spec()

    def discount_spec(self) -> Any:
        """The spec of one member's discount."""
        return self._envs[0].discount_spec()

    def current_time_step(self) -> ts.TimeStep:
        """Returns the members' current time steps.

        Raises:
          ValueError: If a member was never reset.
        """
        return self._stack([env.current_time_step() for env in self._envs])

    def seed(self, seed: int) -> list[Any]:
        """Seeds member `i` with `seed + i`."""
        calls = [(env, seed + i) for i, env in enumerate(self._envs)]
        return self._map(lambda env, own: env.seed(own), calls)

    def get_info(self) -> Any:
        """Returns the members' infos as one nest, `[B, ...]`.

        Infos that differ in structure or shape are returned as a list of `B`.
        """
        return members.stack_infos(
            self._map(lambda env: env.get_info(), [(e,) for e in self._envs])
        )

    def get_state(self) -> list[Any]:
        """Returns the members' states."""
        return self._map(py_environment.capture_state, [(e,) for e in self._envs])

    def set_state(self, state: list[Any]) -> None:
        """Restores what `get_state` returned."""
        calls = list(zip(self._envs, state, strict=True))
        self._map(py_environment.restore_state, calls)

    def render(self, mode: str = "rgb_array") -> Any:
        """Returns the members' pictures, `[B, height, width, 3]`."""
        pictures = self._map(lambda env: env.render(mode), [(e,) for e in self._envs])
        return None if mode == "human" else np.stack(pictures)

    def close(self) -> None:
        """Closes the members, and ends the threads."""
        if self._closed:
            return
        if self._threads is not None:
            # First: threads take no calls at the end of the program.
            self._threads.shutdown()
            self._threads = None
        try:
            self._map(lambda env: env.close(), [(env,) for env in self._envs])
        finally:
            self._closed = True

    def _reset(self) -> ts.TimeStep:
        return self._stack(
            self._map(lambda env: env.reset(), [(e,) for e in self._envs])
        )

    def _step(self, action: Any) -> ts.TimeStep:
        actions = members.unstack_actions_for(action, self.batch_size)
        return self._stack(
            self._map(
                lambda env, member: env.step(member),
                list(zip(self._envs, actions, strict=True)),
            )
        )

    def _stack(self, time_steps: list[ts.TimeStep]) -> ts.TimeStep:
        return members.stack_time_steps(
            time_steps, self.time_step_spec(), lambda index: f"envs[{index}]"
        )

    def _map(
        self, function: Callable[..., Any], calls: list[tuple[Any, ...]]
    ) -> list[Any]:
        """Calls `function` for each member, then raises the first member's error."""
        if self._closed:
            raise RuntimeError(
                "BatchedPyEnvironment: got a call after close(), expected an open "
                "environment; make another one."
            )

        def call(index: int, arguments: tuple[Any, ...]) -> Any:
            try:
                return function(*arguments)
            except Exception as error:
                # The exception keeps its own type, which callers may handle.
                error.add_note(f"This is from envs[{index}] of a BatchedPyEnvironment.")
                return _Failure(error)

        run = map if self._threads is None else self._threads.map
        results = list(run(call, range(len(calls)), calls))
        for result in results:
            if isinstance(result, _Failure):
                raise result.error
        return results


class _Failure:
    """Holds the exception of a member."""

    def __init__(self, error: Exception):
        self.error = error
