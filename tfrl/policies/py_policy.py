"""`PyPolicy`: policies on NumPy arrays."""

from __future__ import annotations

import abc
import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
import tree

from tfrl.policies.acting import prediction, validation
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import mixins


class PyPolicy(mixins.RefusesOverrides, abc.ABC):
    """Maps time steps of arrays to actions; a subclass implements `_action`."""

    _refused_overrides: ClassVar[Mapping[str, str]] = {
        "_setup_specs": "give the constructor other specs",
    }
    # Whether `action` accepts time steps of tensors, too.
    _takes_tensors = False

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedArraySpec,
        policy_state_spec: types.NestedArraySpec = (),
        info_spec: types.NestedArraySpec = (),
        observation_and_action_constraint_splitter: types.Splitter | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          time_step_spec: A `TimeStep` of array specs (tensor specs are converted).
          action_spec: A nest of bounded array specs.
          policy_state_spec: A nest of specs, `()` for a stateless policy.
          info_spec: A nest of specs of `PolicyStep.info`.
          observation_and_action_constraint_splitter: A function from an observation to
            the pair (input of the policy, mask of valid actions).
        """
        self._time_step_spec = tensor_spec.to_nest_array_spec(time_step_spec)
        self._action_spec = tensor_spec.to_nest_array_spec(action_spec)
        self._policy_state_spec = tensor_spec.to_nest_array_spec(policy_state_spec)
        self._info_spec = tensor_spec.to_nest_array_spec(info_spec)
        self._policy_step_spec = policy_step.PolicyStep(
            self._action_spec, self._policy_state_spec, self._info_spec
        )
        self._trajectory_spec = trajectory.from_transition(
            self._time_step_spec, self._policy_step_spec, self._time_step_spec
        )
        self._observation_and_action_constraint_splitter = (
            observation_and_action_constraint_splitter
        )

    def action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedArray = (),
        seed: int | None = None,
    ) -> policy_step.PolicyStep:
        """Returns the action for a time step.

        Args:
          time_step: Arrays that match `time_step_spec`, batched or not.
          policy_state: The state that the previous call returned.
          seed: The seed of all random numbers of this call, if the policy draws any.

        Raises:
          TypeError: The time step holds tensors, or is an observation alone, with
            which the policy can do nothing.
        """
        if not self._takes_tensors and tf.is_tensor(
            getattr(time_step, "step_type", None)
        ):
            raise TypeError(
                f"time_step: {type(self).__name__} is a Python policy and expects "
                "NumPy arrays, got tensors; pass the time step of a Python "
                "environment, or wrap the policy in "
                "tfrl.policies.tf_py_policy.TFPyPolicy."
            )
        # Without a seed, the `_action` of a subclass need not take one.
        seeded = {} if seed is None else {"seed": seed}
        try:
            return self._action(time_step, policy_state, **seeded)
        except AttributeError:
            # A policy that does not read the time step, or only divides it among
            # others, can act on anything.
            validation.check_is_time_step(time_step)
            raise

    def predict(
        self,
        observation: types.NestedArray,
        state: types.NestedArray | None = None,
        episode_start: Any = None,
    ) -> tuple[types.NestedArray, types.NestedArray]:
        """Chooses actions for raw observations; see `TFPolicy.predict`."""
        return self._predictor(self._acting(), observation, state, episode_start)

    @functools.cached_property
    def _predictor(self) -> prediction.Predictor:
        return prediction.of_arrays(self._time_step_spec)

    def _acting(self) -> prediction.Acting:
        """Returns the policy on batches by which `predict` acts."""
        return self

    def get_initial_state(self, batch_size: int | None = None) -> types.NestedArray:
        """Returns the initial state, `[batch_size, ...]`; `()` if stateless."""
        return self._get_initial_state(batch_size)

    @property
    def time_step_spec(self) -> ts.TimeStep:
        """Specs of the time steps that `action` takes."""
        return self._time_step_spec

    @property
    def action_spec(self) -> types.NestedArraySpec:
        """Specs of `PolicyStep.action`."""
        return self._action_spec

    @property
    def policy_state_spec(self) -> types.NestedArraySpec:
        """Specs of `PolicyStep.state`."""
        return self._policy_state_spec

    @property
    def info_spec(self) -> types.NestedArraySpec:
        """Specs of `PolicyStep.info`."""
        return self._info_spec

    @property
    def policy_step_spec(self) -> policy_step.PolicyStep:
        """Specs of the result of `action`."""
        return self._policy_step_spec

    @property
    def trajectory_spec(self) -> trajectory.Trajectory:
        """Specs of the trajectories that this policy makes in an environment."""
        return self._trajectory_spec

    @property
    def collect_data_spec(self) -> trajectory.Trajectory:
        """The specs of `trajectory_spec`, under the name that agents use."""
        return self._trajectory_spec

    @property
    def observation_and_action_constraint_splitter(self) -> types.Splitter | None:
        """Splits an observation into the policy's part and the action mask."""
        return self._observation_and_action_constraint_splitter

    @abc.abstractmethod
    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedArray,
        seed: int | None = None,
    ) -> policy_step.PolicyStep:
        """Chooses the action; see `action`."""

    def _get_initial_state(self, batch_size: int | None) -> types.NestedArray:
        """Returns zeros that match `policy_state_spec`."""
        outer = () if batch_size is None else (batch_size,)

        def zeros(spec: Any) -> np.ndarray:
            return np.zeros((*outer, *spec.shape), spec.dtype)

        return tree.map_structure(zeros, self._policy_state_spec)
