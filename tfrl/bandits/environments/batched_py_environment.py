"""Base classes of TF-Agents' bandits in Python, which are all batched."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.bandits.environments import bandit_py_environment
from tfrl.environments import native
from tfrl.specs import array_spec, tensor_spec


class BatchedPyEnvironment(bandit_py_environment.BanditPyEnvironment):
    """A bandit of several members with one choice among arms each."""

    def __init__(
        self,
        observation_spec: Any,
        num_actions: int,
        batch_size: int | None,
        reward_spec: Any = None,
        name: str | None = None,
    ) -> None:
        """Stores the specs; see `BanditPyEnvironment`."""
        self._size = batch_size or 1
        action_spec = array_spec.BoundedArraySpec([], np.int32, 0, num_actions - 1)
        super().__init__(observation_spec, action_spec, reward_spec, name)

    @property
    def batched(self) -> bool:
        """Always True."""
        return True

    @property
    def batch_size(self) -> int:
        """The number of members."""
        return self._size

    def _check_number(self, action: Any) -> None:
        if len(action) != self._size:
            raise ValueError(
                f"action: got {len(action)} arms, expected {self._size}: the number of "
                "actions must match the batch size; give one for each member."
            )


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
        self._check_number(action)
        self._last_means = self._bandit.physical_state()["round"].means.numpy()
        self._time_step = self._bandit.step(action)
        return self._time_step.reward.numpy()

    def compute_optimal_action(self) -> np.ndarray:
        """Returns the best arm of each member's last round, int32 `[B]`."""
        return self._last_means.argmax(axis=1).astype(np.int32)

    def compute_optimal_reward(self) -> np.ndarray:
        """Returns the expected reward of these arms, float32 `[B]`."""
        return self._last_means.max(axis=1)
