"""The base class of policies that add noise to another policy's actions."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

import tensorflow as tf

from tfrl.policies import tf_policy, utils, wrapper_policy
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.utils import seeds

if TYPE_CHECKING:
    from tfrl.typing import types


class NoisePolicy(wrapper_policy.WrapperPolicy, abc.ABC):
    """Adds noise to another policy's actions; a subclass writes `_add_noise`."""

    def __init__(
        self,
        wrapped_policy: tf_policy.TFPolicy,
        clip: bool = True,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          wrapped_policy: A policy whose actions are all floats.
          clip: Whether `action` clips to the bounds of the action spec.
          name: The module's name.
          seed: See `TFPolicy`.

        Raises:
          ValueError: Some action is discrete.
        """
        utils.check_continuous(wrapped_policy.action_spec, type(self).__name__)
        super().__init__(
            wrapped_policy, name, seed=seed, clip=clip, emit_log_probability=False
        )

    @abc.abstractmethod
    def _add_noise(
        self, action: types.NestedTensor, seed: tf.Tensor
    ) -> types.NestedTensor:
        """Returns the nest of actions `[B, ...]` with noise that is drawn by `seed`."""

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        # The noise has mode 0, so the mode is the wrapped policy's.
        return self._wrapped_policy._greedy_action(time_step, policy_state)

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedTensor,
        seed: tf.Tensor,
    ) -> policy_step.PolicyStep:
        action_seed, noise_seed = seeds.split_seed(seed, 2)
        step = self._wrapped_policy.action(time_step, policy_state, action_seed)
        return step._replace(action=self._add_noise(step.action, noise_seed))
