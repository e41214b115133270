"""A policy on NumPy arrays that draws actions uniformly from their spec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tree

from tfrl.policies import py_policy
from tfrl.specs import array_spec, tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class RandomPyPolicy(py_policy.PyPolicy):
    """Draws actions uniformly; with a mask, only from the valid actions.

    Values in `info` are random samples of `info_spec`.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep | None,
        action_spec: types.NestedArraySpec,
        policy_state_spec: types.NestedArraySpec = (),
        info_spec: types.NestedArraySpec = (),
        seed: int | None = None,
        outer_dims: Sequence[int] | None = None,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          time_step_spec: A `TimeStep` of specs, or None. With None the actions have no
            batch dimension, unless `outer_dims` is given.
          action_spec: A nest of bounded array specs; with a splitter one integer spec
            of shape `()` or `(1,)`.
          policy_state_spec: See `PyPolicy`.
          info_spec: See `PyPolicy`.
          seed: The seed of the random stream; None takes the system's entropy. If
            `action` is given a seed, it uses that seed instead of the stream.
          outer_dims: The batch dimensions of the actions; by default the batch
            dimensions of each time step's observation.
          observation_and_action_constraint_splitter: See `PyPolicy`.

        Raises:
          NotImplementedError: There is a splitter, but `action_spec` cannot be masked.
        """
        action_spec = tensor_spec.to_nest_array_spec(action_spec)
        if observation_and_action_constraint_splitter is not None:
            _check_maskable(action_spec)
        super().__init__(
            ts.time_step_spec() if time_step_spec is None else time_step_spec,
            action_spec,
            policy_state_spec,
            info_spec,
            observation_and_action_constraint_splitter,
        )
        self._sampled_spec = array_spec.bounded_actions(self._action_spec)
        self._rng = np.random.default_rng(seed)
        self._outer_dims = None if outer_dims is None else tuple(outer_dims)

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedArray,
        seed: int | None = None,
    ) -> policy_step.PolicyStep:
        rng = self._rng if seed is None else np.random.default_rng(seed)
        outer_dims = self._outer_dims
        if outer_dims is None:
            outer_dims = self._outer_dims_of(time_step)
        if self._observation_and_action_constraint_splitter is None:
            action = array_spec.sample_spec_nest(
                self._sampled_spec, rng, outer_dims=outer_dims
            )
        else:
            _, mask = self._observation_and_action_constraint_splitter(
                time_step.observation
            )
            action = self._masked_action(np.asarray(mask, bool), rng)
        info = array_spec.sample_spec_nest(self._info_spec, rng, outer_dims=outer_dims)
        return policy_step.PolicyStep(action, policy_state, info)

    def _outer_dims_of(self, time_step: ts.TimeStep) -> tuple[int, ...]:
        specs = tree.flatten(self._time_step_spec.observation)
        if not specs:
            return ()
        shape = np.shape(tree.flatten(time_step.observation)[0])
        return tuple(shape[: len(shape) - len(specs[0].shape)])

    def _masked_action(self, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        # Each of several independent uniform numbers is equally likely to be the
        # largest.
        index = np.argmax(np.where(mask, rng.random(mask.shape), -1.0), axis=-1)
        action = (index + self._action_spec.minimum).astype(self._action_spec.dtype)
        outer_dims = mask.shape[:-1]
        return action.reshape(outer_dims + self._action_spec.shape)


def _check_maskable(action_spec: Any) -> None:
    if (
        not isinstance(action_spec, array_spec.BoundedArraySpec)
        or not np.issubdtype(action_spec.dtype, np.integer)
        or action_spec.shape not in ((), (1,))
    ):
        raise NotImplementedError(
            "action_spec: RandomPyPolicy supports action masks for one bounded integer "
            f"spec of shape () or (1,), got {action_spec}; leave out the splitter, or "
            "flatten the actions to one discrete choice."
        )
