"""Base classes of bandits that are written in Python.

A user's bandit is a `BanditPyEnvironment`. The batched ones are bases of TF-Agents'.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from tfrl.environments import native, py_environment
from tfrl.specs import array_spec, tensor_spec
from tfrl.specs.bandit_spec_utils import GLOBAL_FEATURE_KEY, PER_ARM_FEATURE_KEY
from tfrl.trajectories import time_step as ts
from tfrl.utils import nest_utils
from tfrl.utils.random_numbers import seeds


class BanditPyEnvironment(py_environment.PyEnvironment):
    """A bandit whose subclass writes `_observe` and `_apply_action` with NumPy.

    Wrap it in `tfrl.environments.TFPyEnvironment` for agents. A batched one overrides
    `batched` and `batch_size`.
    """

    _handle_auto_reset = False

    def __init__(
        self,
        observation_spec: Any,
        action_spec: Any,
        reward_spec: Any = None,
        name: str | None = None,
    ) -> None:
        """Stores the specs.

        Args:
          observation_spec: The nest of `ArraySpec`s of an observation.
          action_spec: The nest of `ArraySpec`s of an action.
          reward_spec: The nest of `ArraySpec`s of a reward; None for a float32 number.
          name: The environment's name.
        """
        super().__init__(handle_auto_reset=False)
        self._observation_spec = observation_spec
        self._action_spec = action_spec
        self._reward_spec = reward_spec
        self._name = name

    @property
    def is_bandit(self) -> bool:
        """Always True: each step is a whole round."""
        return True

    @property
    def name(self) -> str | None:
        """The name that was given."""
        return self._name

    def observation_spec(self) -> Any:
        """The nest of `ArraySpec`s of the observations, without the batch."""
        return self._observation_spec

    def action_spec(self) -> Any:
        """The nest of `ArraySpec`s of the actions, without the batch."""
        return self._action_spec

    def reward_spec(self) -> Any:
        """The nest of `ArraySpec`s of the rewards, without the batch."""
        spec = self._reward_spec
        return super().reward_spec() if spec is None else spec

    def _reset(self) -> ts.TimeStep:
        return ts.restart(self._observe(), self.batch_size, self.reward_spec())

    def _step(self, action: Any) -> ts.TimeStep:
        reward = tree.map_structure(
            lambda spec, value: np.asarray(value, spec.dtype),
            self.reward_spec(),
            self._apply_action(action),
        )
        # `termination` makes all rewards float32.
        return ts.termination(self._observe(), reward)._replace(reward=reward)

    @abc.abstractmethod
    def _apply_action(self, action: Any) -> Any:
        """Returns the reward of an action, or of actions `[B, ...]` if batched."""

    @abc.abstractmethod
    def _observe(self) -> Any:
        """Returns the observation of the next round."""


def make_rng(seed: int | None) -> np.random.Generator:
    """Returns NumPy's generator for a seed; None follows `tf.random.set_seed`."""
    number = seeds.draw_number() % 2**63 if seed is None else seed
    return np.random.default_rng(number)


class BatchedPyEnvironment(BanditPyEnvironment):
    """A bandit of several members, which choose arms."""

    def __init__(
        self,
        observation_spec: Any,
        num_actions: int,
        batch_size: int | None,
        reward_spec: Any = None,
        name: str | None = None,
        *,
        action_shape: tuple[int, ...] = (),
    ) -> None:
        """Stores the specs; see `BanditPyEnvironment`."""
        self._size = batch_size or 1
        action_spec = array_spec.BoundedArraySpec(
            action_shape, np.int32, 0, num_actions - 1
        )
        super().__init__(observation_spec, action_spec, reward_spec, name)

    @property
    def batched(self) -> bool:
        """Always True."""
        return True

    @property
    def batch_size(self) -> int:
        """The number of members."""
        return self._size

    def _step(self, action: Any) -> ts.TimeStep:
        if len(action) != self._size:
            raise ValueError(
                f"action: got {len(action)} arms, expected {self._size}: the number of "
                "actions must match the batch size; give one for each member."
            )
        return super()._step(action)


class FeaturesPyEnvironment(BatchedPyEnvironment):
    """A bandit whose functions draw features of rounds and of arms, or of items."""

    def __init__(
        self,
        global_sampling_fn: Callable[[], Any],
        arm_sampling_fn: Callable[[], Any],
        num_actions: int,
        batch_size: int | None,
        name: str | None = None,
        *,
        reward_spec: Any = None,
        action_shape: tuple[int, ...] = (),
        further_spec: dict[str, Any] | None = None,
    ) -> None:
        """Stores the functions.

        Args:
          global_sampling_fn: Draws the features that all arms share, a nest.
          arm_sampling_fn: Draws the features of an arm, a nest.
          num_actions: The number of arms.
          batch_size: The number of members.
          name: The environment's name.
          reward_spec: See `BanditPyEnvironment`.
          action_shape: The shape of a member's action.
          further_spec: The specs of what a subclass adds to the observation.
        """
        self._functions = global_sampling_fn, arm_sampling_fn
        self._num_arms = num_actions
        of_all, of_arm = (
            tree.map_structure(
                lambda x: array_spec.ArraySpec.from_array(np.asarray(x)), draw()
            )
            for draw in self._functions
        )
        of_arms = array_spec.add_outer_dims_nest(of_arm, (num_actions,))
        spec = {GLOBAL_FEATURE_KEY: of_all, PER_ARM_FEATURE_KEY: of_arms}
        super().__init__(
            spec | (further_spec or {}),
            num_actions,
            batch_size,
            reward_spec,
            name,
            action_shape=action_shape,
        )

    def _observe(self) -> Any:
        of_all, of_arm = self._functions
        members, arms = range(self._size), range(self._num_arms)
        stack = nest_utils.stack_nested_arrays
        of_arms = stack([stack([of_arm() for _ in arms]) for _ in members])
        return {
            GLOBAL_FEATURE_KEY: stack([of_all() for _ in members]),
            PER_ARM_FEATURE_KEY: of_arms,
        }

    def _features_of(self, action: Any) -> list[tuple[Any, Any]]:
        """Returns the global features and those of the chosen arm for each member.

        With several arms in an action, the features of these are stacked.
        """
        members = nest_utils.unstack_nested_arrays(self.current_time_step().observation)
        return [
            (
                own[GLOBAL_FEATURE_KEY],
                tree.map_structure(lambda x, arm=arm: x[arm], own[PER_ARM_FEATURE_KEY]),
            )
            for own, arm in zip(members, action, strict=True)
        ]


class ProblemPyEnvironment(BatchedPyEnvironment):
    """A problem of `problems`, as a Python environment.

    It is for programs that need one. `native.NativeEnvironment` runs the same problem
    in TensorFlow, where loops compile it.
    """

    def __init__(
        self,
        dynamics: native.Dynamics,
        batch_size: int | None = 1,
        seed: int | None = None,
        name: str | None = None,
    ) -> None:
        """Makes the problem.

        Args:
          dynamics: A problem of `rounds.dynamics`.
          batch_size: The number of members.
          seed: The seed of the random numbers; None follows `tf.random.set_seed`.
          name: The environment's name.
        """
        self._bandit = native.NativeEnvironment(dynamics, batch_size or 1, seed)
        observation_spec = self._bandit.observation_spec()
        super().__init__(
            tensor_spec.to_nest_array_spec(observation_spec),
            int(self._bandit.action_spec().maximum) + 1,
            batch_size,
            name=name,
        )
        self._time_step: Any = None
        self._last_means = np.zeros([self._size, 1], np.float32)

    def _observe(self) -> Any:
        if self._time_step is None:
            self._time_step = self._bandit.reset()
        return tf.nest.map_structure(lambda x: x.numpy(), self._time_step.observation)

    def _apply_action(self, action: Any) -> Any:
        self._last_means = self._bandit.physical_state()["round"].means.numpy()
        self._time_step = self._bandit.step(action)
        return self._time_step.reward.numpy()

    def compute_optimal_action(self) -> np.ndarray:
        """Returns the best arm of each member's last round, int32 `[B]`."""
        return self._last_means.argmax(axis=1).astype(np.int32)

    def compute_optimal_reward(self) -> np.ndarray:
        """Returns the expected reward of these arms, float32 `[B]`."""
        return self._last_means.max(axis=1)
