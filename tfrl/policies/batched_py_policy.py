"""A policy on batches of arrays, with one policy for each entry of the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any

import numpy as np
import tree

from tfrl.policies import py_policy
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import nest_utils

_SPECS = (
    "time_step_spec",
    "action_spec",
    "policy_state_spec",
    "info_spec",
    "observation_and_action_constraint_splitter",
)


class BatchedPyPolicy(py_policy.PyPolicy):
    """Lets the i-th of several policies act on the i-th entry of a batch."""

    def __init__(
        self, policies: Sequence[py_policy.PyPolicy], multithreading: bool = True
    ) -> None:
        """Creates the policy.

        Args:
          policies: Policies that act on single time steps, all of the same specs.
          multithreading: Whether each policy acts in its own thread; objects that
            the policies share must then be thread-safe. With False the policies act one
            after the other in the caller's thread.

        Raises:
          ValueError: `policies` is not a list or tuple, is empty, or the specs differ.
        """
        _check_policies(policies)
        super().__init__(*(getattr(policies[0], name) for name in _SPECS))
        self._policies = list(policies)
        self._threads: futures.ThreadPoolExecutor | None = None
        if multithreading and len(policies) > 1:
            self._threads = futures.ThreadPoolExecutor(
                len(policies), thread_name_prefix="policy"
            )

    def _map(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list:
        if self._threads is None:
            return list(map(function, self._policies, *arguments))
        return list(self._threads.map(function, self._policies, *arguments))

    def _get_initial_state(self, batch_size: int | None) -> types.NestedArray:
        if batch_size not in (None, len(self._policies)):
            raise ValueError(
                f"batch_size: got {batch_size}, expected {len(self._policies)}, the "
                "number of policies; leave it out."
            )
        return _stacked(self._map(lambda policy: policy.get_initial_state()))

    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: types.NestedArray,
        seed: int | None = None,
    ) -> policy_step.PolicyStep:
        num = len(self._policies)
        states: Sequence[Any] = [()] * num
        if tree.flatten(policy_state):
            states = self._unstacked("policy_state", policy_state)
        policy_seeds: Sequence[int | None] = [None] * num
        if seed is not None:
            # Numbers below 2^31, which every random generator accepts as a seed.
            words = np.random.SeedSequence(seed).generate_state(num) >> 1
            policy_seeds = [int(word) for word in words]
        steps = self._map(
            lambda policy, *arguments: policy.action(*arguments),
            self._unstacked("time_step", time_step),
            states,
            policy_seeds,
        )
        return policy_step.PolicyStep(
            *(_stacked([step[i] for step in steps]) for i in range(3))
        )

    def _unstacked(self, name: str, batched: Any) -> list[Any]:
        entries = nest_utils.unstack_nested_arrays(batched)
        if len(entries) != len(self._policies):
            raise ValueError(
                f"{name}: got {len(entries)} entries in the batch, expected "
                f"{len(self._policies)}, one for each policy; give each environment a "
                "policy."
            )
        return entries


def _stacked(nests: list[Any]) -> Any:
    return nest_utils.stack_nested_arrays(nests)


def _check_policies(policies: Any) -> None:
    if not isinstance(policies, list | tuple) or not policies:
        raise ValueError(
            f"policies: got {policies!r}, expected a list or tuple of at least one "
            "PyPolicy; put a single policy into a list."
        )
    for name in _SPECS:
        first = getattr(policies[0], name)
        for i, policy in enumerate(policies):
            if getattr(policy, name) != first:
                raise ValueError(
                    f"policies: {name} of policy {i} is {getattr(policy, name)}, "
                    f"expected {first} as in policy 0; batch policies of the same "
                    "specs only."
                )
