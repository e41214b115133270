"""A policy that adds entries to `info`, such as the version of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfrl.policies import bases, tf_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types

# A function from a policy step to the entries of `info` to add or to replace.
UpdaterFnType = Callable[
    [policy_step.PolicyStep], dict[str, tf.Tensor | Sequence[tf.Tensor]]
]


class PolicyInfoUpdaterWrapper(bases.WrapperPolicy):
    """Acts like the wrapped policy and updates the dict `PolicyStep.info`."""

    def __init__(
        self,
        policy: tf_policy.TFPolicy,
        info_spec: types.NestedTensorSpec,
        updater_fn: UpdaterFnType,
        name: str | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          policy: A policy whose `info_spec` is a dict, or `()` for an empty dict.
          info_spec: A dict of the specs that `info` has after the update.
          updater_fn: A function from the wrapped policy's `PolicyStep` to a dict of
            tensors `[B, ...]`, or of nests of tensors, to add to `info`; they replace
            entries of the same name. If `distribution` is called, the step's action is
            a nest of distributions.
          name: The module's name.

        Raises:
          ValueError: The `info_spec` of the policy or the new one is not a dict.
        """
        _check_dict("policy.info_spec", policy.info_spec or {})
        _check_dict("info_spec", info_spec)
        self._needs_seed = policy._needs_seed
        super().__init__(policy, name, info_spec=info_spec)
        self._updater_fn = updater_fn

    def apply_value_network(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the wrapped policy's `apply_value_network`, which must exist."""
        return self._wrapped_policy.apply_value_network(*args, **kwargs)

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedTensor,
        seed: tf.Tensor,
    ) -> policy_step.PolicyStep:
        return self._updated(self._wrapped_policy.action(time_step, policy_state, seed))

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        return self._updated(
            self._wrapped_policy._greedy_action(time_step, policy_state)
        )

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        return self._updated(self._wrapped_policy.distribution(time_step, policy_state))

    def _updated(self, step: policy_step.PolicyStep) -> policy_step.PolicyStep:
        updates = self._updater_fn(step)
        info = {**(step.info or {}), **updates}
        for name in updates:
            if name in self._info_spec:
                tf.nest.map_structure(
                    lambda value, spec, name=name: _check_dtype(name, value, spec),
                    info[name],
                    self._info_spec[name],
                )
        return step._replace(info=info)


def _check_dict(argument: str, info_spec: Any) -> None:
    if not isinstance(tensor_spec.from_spec(info_spec), Mapping):
        raise ValueError(
            f"{argument}: got {info_spec}, expected a dict of specs, as updater_fn "
            "adds entries by name; put the info into a dict."
        )


def _check_dtype(name: str, value: Any, spec: Any) -> None:
    dtype = tf.convert_to_tensor(value).dtype
    if dtype != spec.dtype:
        raise TypeError(
            f"updater_fn: {name!r} has dtype {dtype.name}, expected {spec.dtype.name} "
            "as in info_spec; cast it, or change the spec."
        )
