"""The base class of drivers: an environment, a policy, and observers of each step."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfrl.typing import types

Observer = Callable[[Any], Any]


class Driver(abc.ABC):
    """Lets a policy act in an environment and shows every step to observers."""

    def __init__(
        self,
        env: types.PyEnv | types.TFEnv,
        policy: types.PyPolicy | types.TFPolicy,
        observers: Sequence[Observer] | None = None,
        transition_observers: Sequence[Observer] | None = None,
        info_observers: Sequence[Observer] | None = None,
    ) -> None:
        """Creates a driver.

        Args:
          env: The environment to step.
          policy: The policy that acts.
          observers: Each is called with the `Trajectory` of every step, `[B, ...]` in a
            batched environment, without a time dimension.
          transition_observers: Each is called with every step's `(time_step,
            action_step, next_time_step)`.
          info_observers: Each is called with the environment's `get_info()` after every
            step (by the drivers of Python environments only).

        Raises:
          TypeError: If an observer cannot be called.
        """
        self._env: Any = env
        self._policy: Any = policy
        self._observers = _checked("observers", observers)
        self._transition_observers = _checked(
            "transition_observers", transition_observers
        )
        self._info_observers = _checked("info_observers", info_observers)

    @property
    def env(self) -> Any:
        """The environment."""
        return self._env

    @property
    def policy(self) -> Any:
        """The policy."""
        return self._policy

    @property
    def observers(self) -> list[Observer]:
        """The observers of trajectories."""
        return self._observers

    @property
    def transition_observers(self) -> list[Observer]:
        """The observers of transitions."""
        return self._transition_observers

    @property
    def info_observers(self) -> list[Observer]:
        """The observers of the environment's info."""
        return self._info_observers

    @abc.abstractmethod
    def run(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Steps the environment; returns the final time step and policy state."""


def check_limits(max_steps: int | None, max_episodes: int | None) -> None:
    """Raises ValueError unless at least one limit is above 0, and none below."""
    limits = [max_steps or 0, max_episodes or 0]
    if max(limits) < 1 or min(limits) < 0:
        raise ValueError(
            f"max_steps, max_episodes: got {max_steps} and {max_episodes}, expected "
            "at least one above 0, without which the driver would never stop, and none "
            "below; None or 0 is no limit."
        )


def _checked(name: str, observers: Sequence[Observer] | None) -> list[Observer]:
    if callable(observers):
        raise TypeError(
            f"{name}: got one callable, {observers!r}, but expected a list of them; "
            "put it in a list."
        )
    result = list(observers or ())
    for i, observer in enumerate(result):
        if not callable(observer):
            raise TypeError(
                f"{name}[{i}]: got {observer!r}, but an observer is called with each "
                "step; pass a callable, such as replay_buffer.add_batch or a metric."
            )
    return result
