"""A policy that draws actions uniformly from their spec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.policies import tf_policy, utils
from tfrl.specs import array_spec, tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils.random_numbers import seeds


class RandomTFPolicy(tf_policy.TFPolicy):
    """Draws actions uniformly; with a mask, only from the valid actions.

    Values in `info` other than the log-probability are random samples of their specs.
    The log-probabilities have the structure of the action, with leaves `[B]`.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        policy_state_spec: types.NestedTensorSpec = (),
        info_spec: types.NestedTensorSpec = (),
        clip: bool = True,
        emit_log_probability: bool = False,
        automatic_state_reset: bool = True,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        validate_args: bool = True,
        name: str | None = None,
        *,
        stationary_mask: Sequence[int] | None = None,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded specs; with a splitter or a stationary mask,
            one integer spec of shape `[]` or `[1]`.
          policy_state_spec: See `TFPolicy`.
          info_spec: See `TFPolicy`.
          clip: See `TFPolicy`.
          emit_log_probability: See `TFPolicy`.
          automatic_state_reset: See `TFPolicy`.
          observation_and_action_constraint_splitter: See `TFPolicy`.
          validate_args: See `TFPolicy`.
          name: See `TFPolicy`.
          stationary_mask: Zeros and ones, `[num_actions]`. Only actions marked 1 are
            ever drawn.
          seed: See `TFPolicy`.

        Raises:
          NotImplementedError: There is a mask, but `action_spec` is not one integer
            scalar.
          ValueError: `stationary_mask` does not have one entry per action.
        """
        action_spec = tensor_spec.from_spec(action_spec)
        masked = (
            observation_and_action_constraint_splitter is not None
            or stationary_mask is not None
        )
        if masked:
            _check_maskable(action_spec)
        # Samples of a bounded spec lie within its bounds.
        super().__init__(
            time_step_spec,
            action_spec,
            policy_state_spec,
            info_spec,
            clip=clip and not masked and not _all_bounded(action_spec),
            emit_log_probability=emit_log_probability,
            automatic_state_reset=automatic_state_reset,
            observation_and_action_constraint_splitter=(
                observation_and_action_constraint_splitter
            ),
            validate_args=validate_args,
            name=name,
            seed=seed,
        )
        self._sampled_spec = tensor_spec.from_spec(
            array_spec.bounded_actions(tensor_spec.to_nest_array_spec(action_spec))
        )
        self._stationary_mask: np.ndarray | None = None
        if stationary_mask is not None:
            self._stationary_mask = _as_mask(stationary_mask, action_spec)

    def _variables(self) -> Sequence[Any]:
        return []

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedTensor,
        seed: tf.Tensor,
    ) -> policy_step.PolicyStep:
        outer_shape = utils.outer_shape(time_step)
        info: types.NestedTensor = ()
        if tf.nest.flatten(self._info_spec):
            seed, info_seed = seeds.split_seed(seed, 2)
            info = tensor_spec.sample_spec_nest(self._info_spec, info_seed, outer_shape)
        mask = self._mask(time_step)
        if mask is None:
            action = tensor_spec.sample_spec_nest(self._sampled_spec, seed, outer_shape)
        else:
            action = self._masked_action(mask, seed)
        if self._emit_log_probability:
            info = policy_step.set_log_probability(
                info, self._log_probability(mask, outer_shape)
            )
        return policy_step.PolicyStep(action, policy_state, info)

    def _mask(self, time_step: ts.TimeStep) -> tf.Tensor | None:
        """Returns the mask, bool `[B, num_actions]`; None if all actions are valid."""
        mask = None
        if self._observation_and_action_constraint_splitter is not None:
            _, mask = self._observation_and_action_constraint_splitter(
                time_step.observation
            )
            mask = tf.cast(mask, tf.bool)
        if self._stationary_mask is None:
            return mask
        if mask is not None:
            return mask & self._stationary_mask
        shape = tf.concat(
            [tf.shape(time_step.step_type), self._stationary_mask.shape], axis=0
        )
        return tf.broadcast_to(self._stationary_mask, shape)

    def _masked_action(self, mask: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        spec = self._action_spec
        index = utils.random_valid_index(mask, seed)
        action = tf.cast(index, spec.dtype) + tf.cast(spec.minimum, spec.dtype)
        return action[..., tf.newaxis] if spec.shape.rank == 1 else action

    def _log_probability(
        self, mask: tf.Tensor | None, outer_shape: tf.Tensor | tf.TensorShape
    ) -> types.NestedTensor:
        if mask is not None:
            num_valid = tf.reduce_sum(tf.cast(mask, tf.float32), axis=-1)
            return -tf.math.log(num_valid)
        return tf.nest.map_structure(
            lambda spec: tf.fill(outer_shape, _uniform_log_probability(spec)),
            self._action_spec,
        )


def _uniform_log_probability(spec: tensor_spec.BoundedTensorSpec) -> float:
    """Returns the log-probability (density) of any action of `spec`."""
    # In float64, since the width of the bounds may overflow their integer dtype.
    width = spec.maximum.astype(np.float64) - spec.minimum.astype(np.float64)
    if spec.dtype.is_integer:
        width = width + 1
    return -float(np.sum(np.log(np.broadcast_to(width, spec.shape.as_list()))))


def _all_bounded(action_spec: Any) -> bool:
    return all(
        isinstance(spec, tensor_spec.BoundedTensorSpec)
        for spec in tf.nest.flatten(action_spec)
    )


def _check_maskable(action_spec: Any) -> None:
    if (
        not isinstance(action_spec, tensor_spec.BoundedTensorSpec)
        or not action_spec.dtype.is_integer
        or action_spec.shape.as_list() not in ([], [1])
    ):
        raise NotImplementedError(
            "action_spec: RandomTFPolicy supports action masks for one bounded integer "
            f"spec of shape () or (1,), got {action_spec}; leave out the mask, or "
            "flatten the actions to one discrete choice."
        )


def _as_mask(stationary_mask: Sequence[int], action_spec: Any) -> np.ndarray:
    num_actions = int((action_spec.maximum - action_spec.minimum).item()) + 1
    mask = np.asarray(stationary_mask).astype(bool)
    if mask.shape != (num_actions,):
        raise ValueError(
            f"stationary_mask: expected one entry for each of {num_actions} actions, "
            f"got shape {mask.shape}; pass a sequence of {num_actions} zeros and ones."
        )
    return mask
