"""Small Python environments for tests: every step can be worked out by hand.

`CountingEnvironment` counts its steps, with the specs, rewards and ends that a test
chooses. An agent can learn something from the other two: `CorridorEnvironment` needs
exploration and discounting; `RecallEnvironment` is a contextual bandit, or, with a
delay, a test of memory.

None of them is batched; batch them with `BatchedPyEnvironment`. They save and restore
their state, and raise an error at the steps that a test names. Only the bits of
`RecallEnvironment` are random, and it has a seed.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils import number_checks


class _TestEnvironment(py_environment.PyEnvironment):
    """Counts all steps, and raises errors at some; subclasses implement `_advance`.

    Attributes:
      num_steps: The number of steps so far, over all episodes, without resets.
      errors: A dict from step numbers, counted from 1, to the exceptions to raise
        instead of these steps. Each is raised once; a test may add more.
    """

    def __init__(
        self,
        handle_auto_reset: bool = True,
        errors: Mapping[int, BaseException] | None = None,
    ):
        super().__init__(handle_auto_reset)
        self.num_steps = 0
        self.errors = dict(errors or {})

    def seed(self, seed: Any) -> Any:
        """Returns `seed`: nothing is random by default."""
        return seed

    def _step(self, action: Any) -> ts.TimeStep:
        error = self.errors.pop(self.num_steps + 1, None)
        if error is not None:
            raise error
        self.num_steps += 1
        return self._advance(action)

    @abc.abstractmethod
    def _advance(self, action: Any) -> ts.TimeStep:
        """Takes the step and returns its time step, like `_step` in `PyEnvironment`."""


class CountingEnvironment(_TestEnvironment):
    """An environment whose observation is the number of steps in the current episode.

    The actions have no effect. Step k of an episode has reward k, unless other rewards
    are given.

    Attributes:
      length: The number of steps of an episode; a test may change it.
      count: The number of steps of the current episode so far.
      actions: All actions so far, in their order.
      closed: Whether `close` was called.
      num_steps: The number of steps so far, over all episodes, without resets.
      errors: Maps numbers of steps to the exceptions raised instead of the steps.
    """

    def __init__(
        self,
        length: int = 3,
        *,
        observation_spec: Any = None,
        action_spec: Any = None,
        reward_spec: Any = None,
        observe: Callable[[int], Any] | None = None,
        reward: Callable[[int, Any], Any] | None = None,
        discount: float = 1.0,
        truncates: bool = False,
        handle_auto_reset: bool = True,
        errors: Mapping[int, BaseException] | None = None,
    ):
        """Makes episodes of `length` steps.

        Args:
          length: The number of steps of an episode.
          observation_spec: A nest of `ArraySpec`s; None for one int32 number.
          action_spec: A nest of `ArraySpec`s; None for one int32 number, 0 or 1.
          reward_spec: A nest of `ArraySpec`s; None for one float32 number.
          observe: A function from the count to the observation; None fills every array
            of `observation_spec` with the count.
          reward: A function from the count and the action to the reward; None for the
            count.
          discount: The discount of MID steps and of a truncation.
          truncates: Whether episodes end with a truncation instead of a termination.
          handle_auto_reset: See `PyEnvironment`.
          errors: A dict from step numbers, counted from 1 over all episodes, to the
            exceptions to raise instead of these steps, once each.

        Raises:
          ValueError: If `length` is below 1.
        """
        super().__init__(handle_auto_reset, errors)
        number_checks.check_sizes(length=length)
        self.length = length
        self.count = 0
        self.actions: list[Any] = []
        self.closed = False
        self._observation_spec = (
            array_spec.ArraySpec((), np.int32, "count")
            if observation_spec is None
            else observation_spec
        )
        self._action_spec = (
            array_spec.BoundedArraySpec((), np.int32, 0, 1, "action")
            if action_spec is None
            else action_spec
        )
        self._reward_spec = (
            super().reward_spec() if reward_spec is None else reward_spec
        )
        self._observe = observe or self._fill
        self._reward = reward or (lambda count, _action: float(count))
        self._discount = discount
        self._truncates = truncates

    def observation_spec(self) -> Any:
        """The specs of the observations."""
        return self._observation_spec

    def action_spec(self) -> Any:
        """The specs of the actions."""
        return self._action_spec

    def reward_spec(self) -> Any:
        """The specs of the rewards."""
        return self._reward_spec

    def get_info(self) -> dict[str, int]:
        """Returns `{"count": count}`."""
        return {"count": self.count}

    def get_state(self) -> tuple[int, int]:
        """Returns the numbers of steps in this episode and in all episodes."""
        return self.count, self.num_steps

    def set_state(self, state: tuple[int, int]) -> None:
        """Restores a state that `get_state` returned."""
        self.count, self.num_steps = state

    def render(self, mode: str = "rgb_array") -> np.ndarray:
        """Returns a picture `[2, 3, 3]`, uint8, filled with the count."""
        del mode
        return np.full((2, 3, 3), self.count, np.uint8)

    def close(self) -> None:
        """Sets `closed`."""
        self.closed = True

    def _fill(self, count: int) -> Any:
        return tree.map_structure(
            lambda spec: np.full(spec.shape, count, spec.dtype), self._observation_spec
        )

    def _reset(self) -> ts.TimeStep:
        self.count = 0
        return ts.restart(self._observe(0), reward_spec=self._reward_spec)

    def _advance(self, action: Any) -> ts.TimeStep:
        self.actions.append(action)
        self.count += 1
        observation = self._observe(self.count)
        reward = self._reward(self.count, action)
        if self.count < self.length:
            return ts.transition(observation, reward, self._discount, outer_dims=())
        if self._truncates:
            return ts.truncation(observation, reward, self._discount, outer_dims=())
        return ts.termination(observation, reward, outer_dims=())


class CorridorEnvironment(_TestEnvironment):
    """A corridor that the agent walks from cell 0 to the goal at the right end.

    Action 1 steps right and action 0 left; at cell 0 a step left has no effect. The
    observation is the number of the cell, float32 `[1]`.

    Attributes:
      step_reward: The reward of every step but the last; a test may change it.
      num_steps: The number of steps so far, over all episodes, without resets.
      errors: Maps numbers of steps to the exceptions raised instead of the steps.
    """

    def __init__(
        self,
        length: int = 5,
        step_reward: float = -0.1,
        goal_reward: float = 1.0,
        *,
        errors: Mapping[int, BaseException] | None = None,
    ):
        """Makes a corridor.

        Args:
          length: The number of steps to the right from the start to the goal.
          step_reward: The reward of a step that does not reach the goal.
          goal_reward: The reward of the step that reaches the goal, the last step.
          errors: See `CountingEnvironment`.

        Raises:
          ValueError: If `length` is below 1.
        """
        super().__init__(errors=errors)
        number_checks.check_sizes(length=length)
        self._length = length
        self.step_reward = step_reward
        self._goal_reward = goal_reward
        self._cell = 0

    def observation_spec(self) -> array_spec.BoundedArraySpec:
        """The spec of the cell."""
        return array_spec.BoundedArraySpec((1,), np.float32, 0, self._length, "cell")

    def action_spec(self) -> array_spec.BoundedArraySpec:
        """The spec of the action: 0 goes left, 1 right."""
        return array_spec.BoundedArraySpec((), np.int64, 0, 1, "action")

    def get_state(self) -> tuple[int, int]:
        """Returns the cell, and the number of all steps."""
        return self._cell, self.num_steps

    def set_state(self, state: tuple[int, int]) -> None:
        """Restores a state that `get_state` returned."""
        self._cell, self.num_steps = state

    def _observe(self) -> np.ndarray:
        return np.array([self._cell], np.float32)

    def _reset(self) -> ts.TimeStep:
        self._cell = 0
        return ts.restart(self._observe())

    def _advance(self, action: Any) -> ts.TimeStep:
        self._cell = max(0, self._cell + (1 if action == 1 else -1))
        if self._cell == self._length:
            return ts.termination(self._observe(), self._goal_reward)
        return ts.transition(self._observe(), self.step_reward)


class RecallEnvironment(_TestEnvironment):
    """Shows random bits, and gives reward 1 for an action that recalls the right bit.

    The right bit is the bit that was shown `delay` steps earlier, or the current bit if
    `delay` is 0. The observation is the current bit as a one-hot vector, float32 `[2]`.
    With `length=1` this is a contextual bandit. In the first `delay` steps of an
    episode the right bits are from the previous episode; in the first episode they are
    0.

    Attributes:
      length: The number of steps of an episode; a test may change it.
      num_steps: The number of steps so far, over all episodes, without resets.
      errors: Maps numbers of steps to the exceptions raised instead of the steps.
    """

    def __init__(
        self,
        length: int = 3,
        delay: int = 0,
        seed: int | None = 0,
        *,
        errors: Mapping[int, BaseException] | None = None,
    ):
        """Makes episodes of `length` steps.

        Args:
          length: The number of steps of an episode.
          delay: The number of steps for which a bit has to be remembered.
          seed: The seed of the bits; None for different bits each time.
          errors: See `CountingEnvironment`.

        Raises:
          ValueError: If `length` is below 1, or `delay` is negative.
        """
        super().__init__(errors=errors)
        number_checks.check_integer(
            "delay", delay, 0, remedy="with 0, the action repeats the bit on show"
        )
        number_checks.check_sizes(length=length)
        self.length = length
        self._rng = np.random.default_rng(seed)
        self._bits = [0] * (delay + 1)
        self._count = 0

    def observation_spec(self) -> array_spec.BoundedArraySpec:
        """The spec of the bit."""
        return array_spec.BoundedArraySpec((2,), np.float32, 0, 1, "bit")

    def action_spec(self) -> array_spec.BoundedArraySpec:
        """The spec of the action, the bit to recall."""
        return array_spec.BoundedArraySpec((), np.int64, 0, 1, "action")

    def seed(self, seed: int) -> int:
        """Restarts the random bits from `seed`; returns `seed`."""
        self._rng = np.random.default_rng(seed)
        return seed

    def get_state(self) -> tuple[Any, list[int], int, int]:
        """Returns the generator's state, the bits, and the numbers of steps."""
        rng = self._rng.bit_generator.state
        return rng, list(self._bits), self._count, self.num_steps

    def set_state(self, state: tuple[Any, list[int], int, int]) -> None:
        """Restores a state that `get_state` returned."""
        rng, bits, self._count, self.num_steps = state
        self._rng.bit_generator.state = rng
        self._bits = list(bits)

    def _show(self) -> np.ndarray:
        self._bits = [*self._bits[1:], int(self._rng.integers(2))]
        return np.eye(2, dtype=np.float32)[self._bits[-1]]

    def _reset(self) -> ts.TimeStep:
        self._count = 0
        return ts.restart(self._show())

    def _advance(self, action: Any) -> ts.TimeStep:
        reward = float(action == self._bits[0])
        self._count += 1
        if self._count == self.length:
            return ts.termination(self._show(), reward)
        return ts.transition(self._show(), reward)
