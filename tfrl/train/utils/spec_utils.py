"""Specs of tensors for environments and policies on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

if TYPE_CHECKING:
    from tfrl.typing import types


def get_tensor_specs(
    env: types.PyEnv | types.TFEnv,
) -> tuple[types.NestedTensorSpec, types.NestedTensorSpec, ts.TimeStep]:
    """Returns tensor specs of the observations, the actions and the time steps.

    Args:
      env: An environment, on arrays or on tensors.
    """
    time_step_spec = tensor_spec.from_spec(env.time_step_spec())
    return (
        time_step_spec.observation,
        tensor_spec.from_spec(env.action_spec()),
        time_step_spec,
    )


def get_collect_data_spec_from_policy_and_env(
    env: types.PyEnv | types.TFEnv, policy: types.TFPolicy
) -> trajectory.Trajectory:
    """Returns tensor specs of the frames that `policy` collects in `env`.

    An actor needs no agent for these specs, only a policy, which may be a loaded
    policy.

    Args:
      env: An environment, on arrays or on tensors.
      policy: A policy, on arrays or on tensors.
    """
    time_step_spec = tensor_spec.from_spec(env.time_step_spec())
    return trajectory.from_transition(
        time_step_spec, tensor_spec.from_spec(policy.policy_step_spec), time_step_spec
    )
