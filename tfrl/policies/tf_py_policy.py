"""A policy on tensors that runs a policy on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.compilation.python_calls import graph_calls
from tfrl.policies import py_policy, tf_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import nest_utils


def map_tensor_spec_to_dtypes_list(t_spec: types.NestedTensorSpec) -> list[tf.DType]:
    """Returns the dtypes of the specs in a nest, in its flat order."""
    return [spec.dtype for spec in tf.nest.flatten(t_spec)]


class TFPyPolicy(tf_policy.TFPolicy):
    """Runs a `PyPolicy` in TensorFlow graphs, with one `tf.numpy_function` per call.

    It has no distribution and no variables, its actions are not clipped, its state is
    not reset, and it cannot be saved. If `action` is given a seed, the `PyPolicy` gets
    it as a single integer.
    """

    def __init__(
        self,
        policy: py_policy.PyPolicy,
        py_policy_is_batched: bool = False,
        name: str | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          policy: The policy on arrays.
          py_policy_is_batched: Whether `policy` takes batched time steps. With False
            `policy` acts on single time steps, and the batch size must be 1.
          name: The module's name.

        Raises:
          TypeError: `policy` is not a `PyPolicy`.
          ValueError: `policy` has no `time_step_spec`. Also raised by `action` and
            `get_initial_state` if `policy` acts on single time steps and the batch size
            is not 1.
        """
        if not isinstance(policy, py_policy.PyPolicy):
            raise TypeError(
                f"policy: expected a PyPolicy, got {type(policy).__name__}; a TFPolicy "
                "needs no wrapping."
            )
        super().__init__(
            tensor_spec.from_spec(policy.time_step_spec),
            tensor_spec.from_spec(policy.action_spec),
            tensor_spec.from_spec(policy.policy_state_spec),
            tensor_spec.from_spec(policy.info_spec),
            clip=False,
            automatic_state_reset=False,
            name=name,
        )
        if not isinstance(self._time_step_spec.step_type, tf.TypeSpec):
            raise ValueError(
                f"policy: got a {type(policy).__name__} without a time_step_spec, "
                "expected one that tells which time steps it takes; give it its spec."
            )
        self._py_policy = policy
        self._py_policy_is_batched = py_policy_is_batched
        self._ordered_calls = graph_calls.OrderedCalls()

    def _variables(self) -> Sequence[Any]:
        return []

    def _stateless_seed(self, seed: int | tf.Tensor | None) -> Any:
        # The policy on arrays has its own random stream.
        return None if seed is None else super()._stateless_seed(seed)

    def _get_initial_state(
        self, batch_size: int | tf.Tensor | None
    ) -> types.NestedTensor:
        batched = batch_size is not None

        def initial_state(*size: np.ndarray) -> Any:
            if batched and self._py_policy_is_batched:
                return self._py_policy.get_initial_state(int(size[0]))
            return self._py_policy.get_initial_state()

        if not tf.nest.flatten(self._policy_state_spec):
            return self._policy_state_spec
        outer = tf.TensorShape([tf.get_static_value(batch_size)] if batched else [])
        self._check_batch(outer, "a state")
        return self._call(
            initial_state,
            [tf.cast(batch_size, tf.int32)] if batched else [],
            self._policy_state_spec,
            outer,
        )

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedTensor,
        seed: tf.Tensor | None,
    ) -> policy_step.PolicyStep:
        outer = tf.TensorShape(time_step.step_type.shape)
        is_batched = outer.rank == 1
        self._check_batch(outer, "time steps")
        structure = (self._time_step_spec, self._policy_state_spec)
        num_inputs = len(tf.nest.flatten(structure))

        def act(*flat: np.ndarray) -> Any:
            inputs = list(flat[:num_inputs])
            if is_batched and not self._py_policy_is_batched:
                inputs = [np.squeeze(array, 0) for array in inputs]
            py_time_step, py_state = tf.nest.pack_sequence_as(structure, inputs)
            py_seed = (_as_int(flat[num_inputs]),) if seed is not None else ()
            return self._py_policy.action(py_time_step, py_state, *py_seed)

        inputs = tf.nest.flatten((time_step, policy_state))
        if seed is not None:
            inputs.append(seed)
        return self._call(act, inputs, self._policy_step_spec, outer)

    def _check_batch(self, outer: tf.TensorShape, what: str) -> None:
        if self._py_policy_is_batched or outer.rank == 0:
            return
        if outer.rank != 1 or outer[0] not in (None, 1):
            raise ValueError(
                f"{self.name}: got {what} of outer shape {outer}, expected (1,), "
                "as the policy on arrays acts on single time steps; put one policy for "
                "each entry into a BatchedPyPolicy and set py_policy_is_batched=True."
            )

    def _call(
        self, function: Callable[..., Any], inputs: list[Any], spec: Any, outer: Any
    ) -> Any:
        """Calls `function` on arrays; returns tensors `[*outer, ...]` of `spec`."""
        specs = tf.nest.flatten(spec)
        adds_batch = len(outer) == 1 and not self._py_policy_is_batched

        def flat_outputs(*arguments: np.ndarray) -> list[np.ndarray]:
            outputs = function(*arguments)
            nest_utils.assert_same_structure(
                outputs, spec, message=f"{self.name}: result of the policy"
            )
            arrays = [
                np.asarray(output, leaf.dtype.as_numpy_dtype)
                for output, leaf in zip(tf.nest.flatten(outputs), specs, strict=True)
            ]
            return [array[np.newaxis] for array in arrays] if adds_batch else arrays

        outputs = self._ordered_calls(
            flat_outputs, inputs, [tf.TensorSpec(None, leaf.dtype) for leaf in specs]
        )
        for output, leaf in zip(outputs, specs, strict=True):
            output.set_shape(tf.TensorShape(outer).concatenate(leaf.shape))
        return tf.nest.pack_sequence_as(spec, outputs)


def _as_int(seed: np.ndarray) -> int:
    """Returns an integer in [0, 2^63) for a seed `[2]`; `[s, 0]` gives `s`."""
    low, high = (int(word) for word in seed)
    return (low ^ (high << 1)) & (2**63 - 1)
