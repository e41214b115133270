"""`RandomPyEnvironment`: random observations from Python, for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.environments.boundary import action_arrays
from tfrl.specs import array_spec, matching
from tfrl.trajectories import time_step as ts
from tfrl.utils import number_checks

RewardFn = Callable[[np.ndarray, Any, Any], Any]


class RandomPyEnvironment(py_environment.PyEnvironment):
    """Draws each observation from its spec, whatever the action.

    Episodes terminate at random. If there is an action spec, actions that do not match
    it raise an error. In a batch, all members' episodes end at the same steps.
    """

    def __init__(
        self,
        observation_spec: Any,
        action_spec: Any = None,
        episode_end_probability: float = 0.1,
        discount: Any = 1.0,
        reward_fn: RewardFn | None = None,
        batch_size: int | None = None,
        auto_reset: bool = True,
        seed: int | None = 42,
        render_size: Sequence[int] = (2, 2, 3),
        min_duration: int = 0,
        max_duration: int | None = None,
    ):
        """Makes the environment.

        Args:
          observation_spec: A nest of `ArraySpec`s.
          action_spec: A nest of `ArraySpec`s; None accepts any action.
          episode_end_probability: The probability that a step ends the episode.
          discount: The discount of MID steps, a number, or an array `[B]` in a batch.
          reward_fn: Called with the step type (a constant of `StepType`), the action
            and the new observation; returns the reward, `[]` or `[B]`. None gives
            zeros.
          batch_size: The size of the batch, or None for a single environment.
          auto_reset: Whether the step after a LAST step resets.
          seed: The seed of the random numbers; None draws one.
          render_size: The shape of the random pictures that `render` returns.
          min_duration: The minimum number of steps of an episode.
          max_duration: The number of steps after which an episode terminates; None for
            no limit.

        Raises:
          TypeError: If a spec is not an `ArraySpec`.
          ValueError: If an argument is out of its range, or `discount` has another
            shape.
        """
        super().__init__(handle_auto_reset=auto_reset)
        _check_arguments(
            episode_end_probability, batch_size, min_duration, max_duration
        )
        self._observation_spec = _checked_specs("observation_spec", observation_spec)
        self._action_spec = _checked_specs(
            "action_spec", [] if action_spec is None else action_spec
        )
        self._end_probability = episode_end_probability
        self._batch_size = batch_size
        self._outer_shape = () if batch_size is None else (batch_size,)
        self._flat_action = action_arrays.ActionChecker(
            type(self).__name__, self._action_spec, self._outer_shape
        )
        self._discount = np.asarray(discount, np.float32)
        if self._discount.shape == ():
            self._discount = np.full(self._outer_shape, self._discount)
        self._check_shape("discount", self._discount)
        self._reward_fn = reward_fn or self._zero_reward
        self._render_size = tuple(render_size)
        self._min_duration = min_duration
        self._max_duration = max_duration
        self._num_steps = 0
        self._rng = np.random.default_rng(seed)
        self._is_seeded = seed is not None

    @property
    def batched(self) -> bool:
        """Whether there is a batch dimension."""
        return self._batch_size is not None

    @property
    def batch_size(self) -> int | None:
        """The size of the batch, or None."""
        return self._batch_size

    def observation_spec(self) -> Any:
        """The specs of the observations."""
        return self._observation_spec

    def action_spec(self) -> Any:
        """The specs of the actions; an empty list if none were given."""
        return self._action_spec

    def seed(self, seed: int) -> int:
        """Starts the random numbers again from `seed`, and returns it."""
        self._rng = np.random.default_rng(seed)
        return seed

    def render(self, mode: str = "rgb_array") -> np.ndarray:
        """Returns a random picture, uint8 of `render_size`.

        Raises:
          ValueError: If `mode` is not supported.
        """
        if mode != "rgb_array":
            raise ValueError(
                f"mode: got {mode!r}, expected 'rgb_array', because there is no "
                "window; leave it out."
            )
        return self._rng.integers(0, 256, self._render_size, np.uint8)

    def get_state(self) -> Any:
        """Returns the state of the random numbers, and the number of steps."""
        return self._rng.bit_generator.state, self._num_steps

    def set_state(self, state: Any) -> None:
        """Restores a state that `get_state` returned."""
        self._rng.bit_generator.state, self._num_steps = state

    def _reset(self) -> ts.TimeStep:
        self._num_steps = 0
        return ts.restart(self._sample_observation(), self._batch_size)

    def _step(self, action: Any) -> ts.TimeStep:
        self._check_action(action)
        self._num_steps += 1
        observation = self._sample_observation()
        if self._draw_end():
            reward = self._reward(ts.StepType.LAST, action, observation)
            return ts.termination(observation, reward)
        reward = self._reward(ts.StepType.MID, action, observation)
        return ts.transition(observation, reward, self._discount)

    def _sample_observation(self) -> Any:
        return array_spec.sample_spec_nest(
            self._observation_spec, self._rng, self._outer_shape
        )

    def _draw_end(self) -> bool:
        if self._num_steps < self._min_duration:
            return False
        if self._max_duration is not None and self._num_steps >= self._max_duration:
            return True
        return bool(self._rng.uniform() < self._end_probability)

    def _zero_reward(self, *_: Any) -> np.ndarray:
        return np.zeros(self._outer_shape, np.float32)

    def _reward(
        self, step_type: np.ndarray, action: Any, observation: Any
    ) -> np.ndarray:
        reward = np.asarray(self._reward_fn(step_type, action, observation), np.float32)
        self._check_shape("reward_fn", reward)
        return reward

    def _check_shape(self, name: str, array: np.ndarray) -> None:
        if array.shape != self._outer_shape:
            raise ValueError(
                f"{name}: got shape {array.shape}, expected {self._outer_shape}, one "
                f"number{' for each member' if self._outer_shape else ''}; correct "
                "this function, or batch_size."
            )

    def _check_action(self, action: Any) -> None:
        specs = tree.flatten(self._action_spec)
        if not specs:
            return
        for spec, array in zip(specs, self._flat_action(action), strict=True):
            if array_spec.is_bounded(spec):
                remedy = "take actions that follow the action spec"
                matching.check_bounds("action", array, spec, remedy=remedy)


def _checked_specs(name: str, specs: Any) -> Any:
    for spec in tree.flatten(specs):
        if not isinstance(spec, array_spec.ArraySpec):
            raise TypeError(
                f"{name}: got {spec!r} of type {type(spec).__name__} in the nest, "
                "expected ArraySpecs; convert tensor specs with "
                "tensor_spec.to_nest_array_spec."
            )
    return specs


def _check_arguments(
    episode_end_probability: float,
    batch_size: int | None,
    min_duration: int,
    max_duration: int | None,
) -> None:
    number_checks.check_number(
        "episode_end_probability",
        episode_end_probability,
        0,
        1,
        remedy="it is a probability",
    )
    number_checks.check_integer(
        "batch_size", batch_size, 1, optional=True, remedy="None is a single one"
    )
    if max_duration is not None and max_duration < max(1, min_duration):
        raise ValueError(
            f"max_duration: got {max_duration} with min_duration {min_duration}, "
            "expected at least one step, and no less than the minimum; raise it, or "
            "give None for no limit."
        )
