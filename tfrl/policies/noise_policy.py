"""What policies that add noise to another's continuous actions have in common."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.policies import tf_policy, utils
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.utils import seeds

if TYPE_CHECKING:
    from tfrl.typing import types


class NoisePolicy(tf_policy.TFPolicy, abc.ABC):
    """Acts like another policy, and adds noise; a subclass writes `_add_noise`.

    Args:
      wrapped_policy: a policy whose actions are all floats.
      clip: whether `action` clips to the bounds of the action spec.
      name: the module's name.
      seed: see `TFPolicy`.

    Raises:
      ValueError: some action is discrete.
    """

    def __init__(
        self,
        wrapped_policy: tf_policy.TFPolicy,
        clip: bool = True,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        utils.check_continuous(wrapped_policy.action_spec, type(self).__name__)
        super().__init__(
            wrapped_policy.time_step_spec,
            wrapped_policy.action_spec,
            wrapped_policy.policy_state_spec,
            wrapped_policy.info_spec,
            clip=clip,
            automatic_state_reset=wrapped_policy._automatic_state_reset,
            observation_and_action_constraint_splitter=(
                wrapped_policy.observation_and_action_constraint_splitter
            ),
            validate_args=wrapped_policy.validate_args,
            name=name,
            seed=seed,
        )
        self._wrapped_policy = wrapped_policy

    @property
    def wrapped_policy(self) -> tf_policy.TFPolicy:
        """The policy to whose actions the noise is added."""
        return self._wrapped_policy

    @abc.abstractmethod
    def _add_noise(
        self, action: types.NestedTensor, seed: tf.Tensor
    ) -> types.NestedTensor:
        """Returns the nest of actions `[B, ...]` with noise that `seed` decides."""

    def _variables(self) -> Sequence[Any]:
        return self._wrapped_policy.variables()

    def _get_initial_state(
        self, batch_size: int | tf.Tensor | None
    ) -> types.NestedTensor:
        return self._wrapped_policy.get_initial_state(batch_size)

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        # The noise has mean and mode 0.
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
