"""A policy that always takes the same action, for tests and baselines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree
from typing_extensions import override

from tfrl.policies import tf_policy, utils
from tfrl.specs import bounds, matching, tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import common


class FixedPolicy(tf_policy.TFPolicy):
    """Takes the same action at each time step."""

    _needs_seed = False

    def __init__(
        self,
        actions: types.NestedTensor,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        emit_log_probability: bool = True,
        policy_info: types.NestedTensor = (),
        info_spec: types.NestedTensorSpec = (),
        name: str | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          actions: A nest of numbers, lists, arrays or tensors with the structure and
            shapes of `action_spec`, without batch dimension; they are not clipped to
            its bounds.
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of specs.
          emit_log_probability: Whether `info` holds log-probabilities, which are 0.
          policy_info: The value of `PolicyStep.info`, a nest with the structure of
            `info_spec`. Values that have the shapes of `info_spec` are repeated for
            each entry of the batch. A missing `log_probability` is 0.
          info_spec: See `TFPolicy`.
          name: The module's name.

        Raises:
          ValueError: `actions` differs from `action_spec` in structure or in a shape.
        """
        super().__init__(
            time_step_spec,
            action_spec,
            info_spec=info_spec,
            clip=False,
            emit_log_probability=emit_log_probability,
            name=name,
        )
        self._set_untracked("_action_value", _as_arrays(actions, self._action_spec))
        given_info_spec = tensor_spec.from_spec(info_spec)
        self._set_untracked(
            "_policy_info", _with_log_probability(policy_info, given_info_spec)
        )
        self._set_untracked("_given_info_spec", given_info_spec)

    def _variables(self) -> Sequence[Any]:
        return []

    def _fixed_step(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        outer_shape = utils.outer_shape(time_step)
        action = tf.nest.map_structure(
            lambda value: common.replicate(value, outer_shape), self._action_value
        )
        info = self._policy_info
        if tf.nest.flatten(info):
            info = tf.nest.map_structure(
                lambda value, spec: _repeated(value, spec, outer_shape),
                info,
                self._given_info_spec,
            )
        if self._emit_log_probability:
            certain = tf.zeros(outer_shape, tf.float32)
            info = policy_step.set_log_probability(
                info, tf.nest.map_structure(lambda _: certain, self._action_spec)
            )
        return policy_step.PolicyStep(action, policy_state, info)

    @override
    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedTensor,
        seed: tf.Tensor,
    ) -> policy_step.PolicyStep:
        return self._fixed_step(time_step, policy_state)

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        return self._fixed_step(time_step, policy_state)

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        from tfrl.policies.acting import deterministic

        step = self._fixed_step(time_step, policy_state)
        return step._replace(
            action=tf.nest.map_structure(
                lambda value: deterministic.DeterministicWithLogProb(loc=value),
                step.action,
            )
        )


def _with_log_probability(info: Any, info_spec: Any) -> Any:
    """Adds a log-probability of zero to `info` if only its spec has one."""
    specs = policy_step.get_log_probability(info_spec, ())
    given = policy_step.get_log_probability(info, ())
    num_specs = _num_entries(specs)
    if num_specs == 0 or _num_entries(given) > 0:
        return info
    if _num_entries(info) == 0 and _num_entries(info_spec) == num_specs:
        info = info_spec  # Gives the structure; it has no other contents.
    zeros = tf.nest.map_structure(
        lambda spec: np.zeros(spec.shape, spec.dtype.as_numpy_dtype), specs
    )
    return policy_step.set_log_probability(info, zeros)


def _num_entries(nest: Any) -> int:
    return 0 if nest is None else len(tf.nest.flatten(nest))


def _as_arrays(actions: Any, action_spec: Any) -> Any:
    """Returns `actions` as arrays of the dtypes and shapes of the spec."""
    try:
        # The mapping stops at the specs, because a single action may be a list of
        # numbers.
        arrays = tree.map_structure_up_to(action_spec, np.asarray, actions)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"actions: got {actions}, expected the structure of action_spec, "
            f"{action_spec}; {error}"
        ) from error
    return tf.nest.pack_sequence_as(
        action_spec,
        [
            _as_array(matching.join("actions", *path), value, spec)
            for (path, spec), value in zip(
                tree.flatten_with_path(action_spec),
                tf.nest.flatten(arrays),
                strict=True,
            )
        ],
    )


def _as_array(where: str, value: np.ndarray, spec: Any) -> np.ndarray:
    dtype = spec.dtype.as_numpy_dtype
    if not (spec.dtype.is_floating or bounds.keeps_values(value, dtype)):
        raise ValueError(
            f"{where}: got {value}, expected numbers of dtype {spec.dtype.name}; round "
            "them."
        )
    array = value.astype(dtype)
    remedy = "give one action, without batch dimension"
    matching.check(where, array, spec, remedy=remedy)
    return array


def _repeated(value: Any, spec: Any, outer_shape: Any) -> tf.Tensor:
    value = tf.convert_to_tensor(value, spec.dtype)
    if value.shape.rank == spec.shape.rank:
        return common.replicate(value, outer_shape)
    return value
