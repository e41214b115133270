"""TF-Agents' small environments that count, for tests.

Every observation says which step of which episode it is, so a test can tell frames
apart. `tfrl.testing` has more environments for tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrl.environments import py_environment
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts


class _StepCounter(py_environment.PyEnvironment):
    """Counts episodes and steps; the last step of an episode has reward 1, others 0.

    Subclasses write the specs, and `_observe` from `_episodes` and `_steps`.
    """

    def __init__(self, steps_per_episode: int):
        super().__init__(handle_auto_reset=True)
        if steps_per_episode < 1:
            raise ValueError(
                f"steps_per_episode: got {steps_per_episode}, expected at least 1; "
                "raise it."
            )
        self._steps_per_episode = steps_per_episode
        self._episodes = 0
        self._steps = 0

    def seed(self, seed: Any) -> Any:
        """Returns `seed`: nothing here is random."""
        return seed

    def get_info(self) -> dict[str, Any]:
        """Returns an empty dict."""
        return {}

    def get_state(self) -> tuple[int, int]:
        """Returns the number of finished episodes and of steps in the current one."""
        return self._episodes, self._steps

    def set_state(self, state: tuple[int, int]) -> None:
        """Restores what `get_state` returned."""
        self._episodes, self._steps = state

    def _observe(self) -> Any:
        raise NotImplementedError

    def _reset(self) -> ts.TimeStep:
        if self._steps >= self._steps_per_episode:
            self._episodes += 1
        self._steps = 0
        return ts.restart(self._observe())

    def _step(self, action: Any) -> ts.TimeStep:
        del action
        self._steps += 1
        if self._steps < self._steps_per_episode:
            return ts.transition(self._observe(), 0.0)
        return ts.termination(self._observe(), 1.0)


class CountingEnv(_StepCounter):
    """Observes one number, `10 * finished episodes + steps in this episode`.

    Actions are 0 or 1 and change nothing. A reset in mid-episode counts no episode.
    """

    def __init__(self, steps_per_episode: int = 10, dtype: Any = np.int32):
        """Makes episodes of `steps_per_episode` steps.

        Args:
          steps_per_episode: After how many steps an episode terminates; above 10 the
            numbers of two episodes overlap.
          dtype: The dtype of observations and actions.

        Raises:
          ValueError: If an episode would have no step.
        """
        super().__init__(steps_per_episode)
        self._dtype = np.dtype(dtype)

    def observation_spec(self) -> array_spec.BoundedArraySpec:
        """The spec of the number."""
        return array_spec.BoundedArraySpec((), self._dtype, name="observation")

    def action_spec(self) -> array_spec.BoundedArraySpec:
        """The spec of the actions, 0 or 1."""
        return array_spec.BoundedArraySpec((), self._dtype, 0, 1, name="action")

    def _observe(self) -> np.ndarray:
        return np.array(10 * self._episodes + self._steps, self._dtype)


class EpisodeCountingEnv(_StepCounter):
    """Observes `(finished episodes, steps in this episode)`, both int32.

    Actions are 0 or 1 and change nothing. A reset in mid-episode counts no episode.
    """

    def __init__(self, steps_per_episode: int = 10):
        """Makes episodes of `steps_per_episode` steps.

        Args:
          steps_per_episode: After how many steps an episode terminates.

        Raises:
          ValueError: If an episode would have no step.
        """
        super().__init__(steps_per_episode)

    def observation_spec(self) -> tuple[array_spec.BoundedArraySpec, ...]:
        """The specs of the two numbers."""
        return (
            array_spec.BoundedArraySpec((), np.int32, name="episodes"),
            array_spec.BoundedArraySpec((), np.int32, name="steps"),
        )

    def action_spec(self) -> array_spec.BoundedArraySpec:
        """The spec of the actions, 0 or 1."""
        return array_spec.BoundedArraySpec((), np.int32, 0, 1, name="action")

    def _observe(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self._episodes, np.int32), np.array(self._steps, np.int32)


class NestedCountingEnv(_StepCounter):
    """Observes a dict: `total_steps` as `CountingEnv` counts, and `current_steps`.

    Actions are 0 or 1, two of them in a dict if `nested_action`, and change nothing.
    """

    def __init__(self, steps_per_episode: int = 10, nested_action: bool = False):
        """Makes episodes of `steps_per_episode` steps.

        Args:
          steps_per_episode: After how many steps an episode terminates.
          nested_action: Whether an action is `{"foo": ..., "bar": ...}`.

        Raises:
          ValueError: If an episode would have no step.
        """
        super().__init__(steps_per_episode)
        self._nested_action = nested_action

    def observation_spec(self) -> dict[str, array_spec.BoundedArraySpec]:
        """The specs of the two numbers, int32."""
        return {
            name: array_spec.BoundedArraySpec((), np.int32, name=name)
            for name in ("total_steps", "current_steps")
        }

    def action_spec(self) -> Any:
        """The spec of the actions, 0 or 1, or a dict of two."""
        spec = array_spec.BoundedArraySpec((), np.int32, 0, 1, name="action")
        if not self._nested_action:
            return spec
        return {name: spec.replace(name=name) for name in ("foo", "bar")}

    def _observe(self) -> dict[str, np.ndarray]:
        return {
            "total_steps": np.array(10 * self._episodes + self._steps, np.int32),
            "current_steps": np.array(self._steps, np.int32),
        }
