"""The base classes of policies that wrap another policy or add noise to its actions.

>>> import tensorflow as tf
>>> from tfrl import policies, specs, trajectories
>>> from tfrl.policies import bases
>>> class Opposite(bases.WrapperPolicy):
...     def _action(self, time_step, policy_state, seed):
...         step = self.wrapped_policy.action(time_step, policy_state, seed)
...         return step._replace(action=-step.action)
>>> time_step_spec = trajectories.time_step_spec(tf.TensorSpec([1]))
>>> action_spec = specs.BoundedTensorSpec([], tf.float32, -1, 1)
>>> policy = Opposite(policies.FixedPolicy(0.5, time_step_spec, action_spec))
>>> time_step = trajectories.restart(tf.zeros([2, 1]), batch_size=2)
>>> policy.action(time_step).action.numpy()
array([-0.5, -0.5], dtype=float32)
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.policies import tf_policy, utils
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import actions, nest_utils
from tfrl.utils.random_numbers import seeds


class WrapperPolicy(tf_policy.TFPolicy):
    """Base class of policies that wrap a policy and have its specs and flags.

    The wrapped policy also gives the variables and the initial state. A subclass
    implements `_action` or `_distribution`, as for any `TFPolicy`.
    """

    def __init__(
        self,
        policy: tf_policy.TFPolicy,
        name: str | None = None,
        *,
        seed: int | None = None,
        **differences: Any,
    ) -> None:
        """Creates the policy.

        Args:
          policy: The policy to wrap.
          name: The module's name.
          seed: See `TFPolicy`.
          **differences: Arguments of `TFPolicy` to use instead of the wrapped policy's
            values.
        """
        arguments = {
            "time_step_spec": policy.time_step_spec,
            "action_spec": policy.action_spec,
            "policy_state_spec": policy.policy_state_spec,
            "info_spec": policy.info_spec,
            "clip": policy._clip,
            "emit_log_probability": policy.emit_log_probability,
            "automatic_state_reset": policy._automatic_state_reset,
            "observation_and_action_constraint_splitter": (
                policy.observation_and_action_constraint_splitter
            ),
            "validate_args": policy.validate_args,
            **differences,
        }
        super().__init__(name=name, seed=seed, **arguments)
        self._wrapped_policy = policy
        self._greedy_action_needs_clip = policy._greedy_action_needs_clip

    @property
    def wrapped_policy(self) -> tf_policy.TFPolicy:
        """The wrapped policy."""
        return self._wrapped_policy

    def network_state(self, policy_state: Any) -> Any:
        """Returns the wrapped policy's part; see `TFPolicy.network_state`."""
        return self._wrapped_policy.network_state(policy_state)

    def prepare(self, batch_size: int | None) -> None:
        """Prepares the wrapped policy; see `TFPolicy.prepare`."""
        self._wrapped_policy.prepare(batch_size)

    def _variables(self) -> Sequence[Any]:
        return self._wrapped_policy.variables()

    def _get_initial_state(
        self, batch_size: int | tf.Tensor | None
    ) -> types.NestedTensor:
        return self._wrapped_policy.get_initial_state(batch_size)


class NoisePolicy(WrapperPolicy, abc.ABC):
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
