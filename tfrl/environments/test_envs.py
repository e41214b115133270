"""TF-Agents' small environments that count, for tests.

They are `tfrl.testing.CountingEnvironment`s that count episodes, too. Every observation
identifies its step and its episode, so a test can tell frames apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfrl.specs import array_spec
from tfrl.testing import environments
from tfrl.trajectories import time_step as ts
from tfrl.utils import number_checks


class _EpisodeCounter(environments.CountingEnvironment):
    """Counts episodes and steps; the last step of an episode has reward 1, others 0."""

    def __init__(
        self,
        steps_per_episode: int,
        observation_spec: Any,
        action_spec: Any,
        observe: Callable[[int, int], Any],
    ):
        number_checks.check_sizes(steps_per_episode=steps_per_episode)
        super().__init__(
            steps_per_episode,
            observation_spec=observation_spec,
            action_spec=action_spec,
            observe=lambda count: observe(self._episodes, count),
            reward=lambda count, _: float(count == self.length),
        )
        self._episodes = 0

    def get_info(self) -> dict[str, Any]:
        """Returns an empty dict."""
        return {}

    def get_state(self) -> Any:
        """Returns the number of finished episodes, and the counts of steps."""
        return self._episodes, *super().get_state()

    def set_state(self, state: Any) -> None:
        """Restores a state that `get_state` returned."""
        self._episodes = state[0]
        super().set_state(state[1:])

    def _reset(self) -> ts.TimeStep:
        self._episodes += self.count >= self.length
        return super()._reset()


class CountingEnv(_EpisodeCounter):
    """Observes one number, `10 * finished episodes + steps in this episode`.

    Actions are 0 or 1 and change nothing. Unfinished episodes do not count.
    """

    def __init__(self, steps_per_episode: int = 10, dtype: Any = np.int32):
        """Makes episodes of `steps_per_episode` steps.

        Args:
          steps_per_episode: The number of steps after which an episode terminates;
            above 10 the numbers of two episodes overlap.
          dtype: The dtype of observations and actions.

        Raises:
          ValueError: If an episode would have no step.
        """
        super().__init__(
            steps_per_episode,
            array_spec.BoundedArraySpec((), dtype, name="observation"),
            array_spec.BoundedArraySpec((), dtype, 0, 1, name="action"),
            lambda episodes, steps: np.array(10 * episodes + steps, dtype),
        )


class EpisodeCountingEnv(_EpisodeCounter):
    """Observes `(finished episodes, steps in this episode)`, both int32.

    Actions are 0 or 1 and change nothing. Unfinished episodes do not count.
    """

    def __init__(self, steps_per_episode: int = 10):
        """Makes episodes of `steps_per_episode` steps.

        Args:
          steps_per_episode: The number of steps after which an episode terminates.

        Raises:
          ValueError: If an episode would have no step.
        """
        super().__init__(
            steps_per_episode,
            (_number("episodes"), _number("steps")),
            _number("action", 0, 1),
            lambda *counts: tuple(np.array(count, np.int32) for count in counts),
        )


class NestedCountingEnv(_EpisodeCounter):
    """Observes a dict: `total_steps`, counted as in `CountingEnv`, and `current_steps`.

    Actions are 0 or 1, two of them in a dict if `nested_action`, and change nothing.
    """

    def __init__(self, steps_per_episode: int = 10, nested_action: bool = False):
        """Makes episodes of `steps_per_episode` steps.

        Args:
          steps_per_episode: The number of steps after which an episode terminates.
          nested_action: Whether an action is `{"foo": ..., "bar": ...}`.

        Raises:
          ValueError: If an episode would have no step.
        """
        nest = {name: _number(name, 0, 1) for name in ("foo", "bar")}
        super().__init__(
            steps_per_episode,
            {name: _number(name) for name in ("total_steps", "current_steps")},
            nest if nested_action else _number("action", 0, 1),
            lambda episodes, steps: {
                "total_steps": np.array(10 * episodes + steps, np.int32),
                "current_steps": np.array(steps, np.int32),
            },
        )


def _number(
    name: str, minimum: int | None = None, maximum: int | None = None
) -> array_spec.BoundedArraySpec:
    return array_spec.BoundedArraySpec((), np.int32, minimum, maximum, name)
