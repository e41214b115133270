"""The base class of policies that add noise to another policy's actions."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.policies import tf_policy, utils
from tfrl.policies.bases import wrapper_policy
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import actions, nest_utils
from tfrl.utils.random_numbers import seeds


class NoisePolicy(wrapper_policy.WrapperPolicy, abc.ABC):
    """Adds noise to another policy's actions; a subclass implements `_draw_noise`."""

    def __init__(
        self,
        wrapped_policy: tf_policy.TFPolicy,
        clip: bool = True,
        name: str | None = None,
        *,
        seed: int | None = None,
        scaled_to_spec: bool = False,
    ) -> None:
        """Creates the policy.

        Args:
          wrapped_policy: A policy whose actions are all floats.
          clip: Whether `action` clips to the bounds of the action spec.
          name: The module's name.
          seed: See `TFPolicy`.
          scaled_to_spec: Whether the noise is multiplied by half the range of each
            action, as if actions lay in [-1, 1].

        Raises:
          ValueError: Some action is discrete, or has no finite bounds although the
            noise is scaled to them.
        """
        utils.check_continuous(wrapped_policy.action_spec, type(self).__name__)
        super().__init__(
            wrapped_policy, name, seed=seed, clip=clip, emit_log_probability=False
        )
        self._noise_units: list[Any] | None = None
        if scaled_to_spec:
            self._noise_units = _half_ranges(self._action_spec)

    @abc.abstractmethod
    def _draw_noise(
        self, like: Sequence[tf.Tensor], noise_seeds: Sequence[tf.Tensor]
    ) -> list[tf.Tensor]:
        """Draws noise `[B, ...]` for each of the actions, each with its own seed."""

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
        flat = tf.nest.flatten(step.action)
        noises = self._draw_noise(flat, seeds.split_seed(noise_seed, len(flat)))
        if self._noise_units is not None:
            noises = [
                noise * tf.cast(unit, noise.dtype)
                for noise, unit in zip(noises, self._noise_units, strict=True)
            ]
        noisy = [value + noise for value, noise in zip(flat, noises, strict=True)]
        return step._replace(action=tf.nest.pack_sequence_as(step.action, noisy))


def _half_ranges(action_spec: types.NestedTensorSpec) -> list[Any]:
    for path, spec in nest_utils.flatten_with_joined_paths(action_spec):
        if not actions.has_finite_range(spec):
            raise ValueError(
                f"scaled_to_spec: got True for action_spec {path}".rstrip()
                + f" {spec}, expected a finite minimum and maximum; leave it False, "
                "and give the noise in units of the action."
            )
    _, half_ranges = actions.spec_means_and_magnitudes(action_spec)
    return tf.nest.flatten(half_ranges)
