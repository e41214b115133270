"""`BatchedPyEnvironment`: several Python environments as one batched environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from multiprocessing import pool
from typing import Any

import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.trajectories import time_step as ts


class BatchedPyEnvironment(py_environment.PyEnvironment):
    """Steps its members one after the other, or each on a thread of its own.

    The members reset themselves, each when its own episode has ended.
    """

    # Each member keeps its own current time step, and resets when it has none.
    _current_time_step: Any = ()

    def __init__(
        self, envs: Sequence[py_environment.PyEnvironment], multithreading: bool = True
    ):
        """Batches `envs`.

        Args:
          envs: Environments with equal specs, none of them batched.
          multithreading: Whether each member is called on a thread of its own.

        Raises:
          ValueError: If there are none, one is batched, or their specs differ.
        """
        super().__init__(handle_auto_reset=False)
        self._envs = list(envs)
        if not self._envs or any(env.batched for env in self._envs):
            raise ValueError(
                f"envs: got {envs!r}, expected at least one environment and no batched "
                "one; give the single environments."
            )
        for name in ("action_spec", "time_step_spec"):
            specs = [getattr(env, name)() for env in self._envs]
            if any(spec != specs[0] for spec in specs):
                raise ValueError(
                    f"envs: got environments whose {name} differ, {specs}, expected "
                    "equal ones; wrap the members so that they agree."
                )
        self._pool = pool.ThreadPool(len(self._envs)) if multithreading else None

    @property
    def batched(self) -> bool:
        """Whether there is a batch dimension: always."""
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
          ValueError: If one was never reset.
        """
        return _stack([env.current_time_step() for env in self._envs])

    def seed(self, seed: int) -> list[Any]:
        """Seeds member `i` with `seed + i`."""
        return [env.seed(seed + i) for i, env in enumerate(self._envs)]

    def get_info(self) -> list[Any]:
        """Returns the members' infos, a list, since they may differ in structure."""
        return [env.get_info() for env in self._envs]

    def get_state(self) -> list[Any]:
        """Returns the members' states."""
        return [py_environment.capture_state(env) for env in self._envs]

    def set_state(self, state: list[Any]) -> None:
        """Restores what `get_state` returned."""
        for env, captured in zip(self._envs, state, strict=True):
            py_environment.restore_state(env, captured)

    def render(self, mode: str = "rgb_array") -> Any:
        """Returns the members' pictures, `[B, height, width, 3]`."""
        pictures = self._map(lambda env: env.render(mode), [(e,) for e in self._envs])
        return None if mode == "human" else np.stack(pictures)

    def close(self) -> None:
        """Closes the members, and the threads."""
        self._map(lambda env: env.close(), [(env,) for env in self._envs])
        if self._pool is not None:
            self._pool.close()
            self._pool.join()
            self._pool = None

    def _reset(self) -> ts.TimeStep:
        return _stack(self._map(lambda env: env.reset(), [(e,) for e in self._envs]))

    def _step(self, action: Any) -> ts.TimeStep:
        leaves = [np.asarray(leaf) for leaf in tree.flatten(action)]
        sizes = [leaf.shape[:1] for leaf in leaves]
        if any(size != (self.batch_size,) for size in sizes):
            raise ValueError(
                f"action: got leading dimensions {sizes}, expected the batch size "
                f"{self.batch_size}; give one action for each member."
            )
        calls = [
            (env, tree.unflatten_as(action, [leaf[i] for leaf in leaves]))
            for i, env in enumerate(self._envs)
        ]
        return _stack(self._map(lambda env, member: env.step(member), calls))

    def _map(
        self, function: Callable[..., Any], calls: list[tuple[Any, ...]]
    ) -> list[Any]:
        if self._pool is not None:
            return self._pool.starmap(function, calls)
        return [function(*arguments) for arguments in calls]


def _stack(time_steps: list[ts.TimeStep]) -> ts.TimeStep:
    return tree.map_structure(lambda *leaves: np.stack(leaves), *time_steps)
