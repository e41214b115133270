"""A policy that takes its actions from a script, for tests and demonstrations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tree
from typing_extensions import override

from tfrl.policies import py_policy
from tfrl.specs import array_spec, bounds
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class ScriptedPyPolicy(py_policy.PyPolicy):
    """Takes the actions of a script, each for a given number of steps.

    ```python
    ScriptedPyPolicy(time_step_spec, action_spec, [(1, 0), (2, 1)])  # Acts 0, 1, 1.
    ```

    The policy state is `[index, count]`: the index of the current entry of the script,
    and the number of steps already taken in it. To restart the script in a new episode,
    pass `get_initial_state()`.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep | None,
        action_spec: types.NestedArraySpec,
        action_script: Sequence[tuple[int, types.NestedArray]],
    ) -> None:
        """Creates the policy.

        Args:
          time_step_spec: A `TimeStep` of specs, or None, since the policy does not use
            observations.
          action_spec: A nest of array specs.
          action_script: Pairs `(num_steps, action)`, where `action` is a nest with the
            structure of `action_spec` and may hold lists instead of arrays. Entries
            whose `num_steps` is not positive are skipped.

        Raises:
          ValueError: An action does not fit `action_spec`. `action` also raises it when
            the script is over.
        """
        super().__init__(
            ts.time_step_spec() if time_step_spec is None else time_step_spec,
            action_spec,
            policy_state_spec=[
                array_spec.ArraySpec((), np.int64, "index"),
                array_spec.ArraySpec((), np.int64, "count"),
            ],
        )
        self._script = [
            (num_steps, self._as_action(index, action) if num_steps > 0 else None)
            for index, (num_steps, action) in enumerate(action_script)
        ]

    @override
    def _get_initial_state(self, batch_size: int | None) -> list[int]:
        return [0, 0]

    @override
    def _action(
        self,
        time_step: ts.TimeStep,
        policy_state: Any,
        seed: int | None = None,
    ) -> policy_step.PolicyStep:
        if policy_state is None or len(policy_state) == 0:
            policy_state = self._get_initial_state(None)
        index, count = map(int, policy_state)
        while index < len(self._script) and count >= self._script[index][0]:
            index, count = index + 1, 0
        if index >= len(self._script):
            raise ValueError(
                "action_script: the episode is longer than the script, whose "
                f"{sum(max(0, num) for num, _ in self._script)} steps are done; add "
                "entries, or end episodes earlier with a TimeLimit wrapper."
            )
        return policy_step.PolicyStep(self._script[index][1], [index, count + 1])

    def _as_action(self, index: int, action: Any) -> Any:
        """Checks `action` against the spec; returns arrays of the spec's dtypes."""
        problem = (
            f"action_script: the action at index {index} does not match action_spec: "
            f"got {action!r}, expected {self._action_spec}; "
        )
        try:
            arrays = tree.map_structure_up_to(
                self._action_spec, _as_array, self._action_spec, action
            )
        except (TypeError, ValueError) as error:
            raise ValueError(f"{problem}{error}") from error
        if not array_spec.check_arrays_nest(arrays, self._action_spec):
            raise ValueError(
                f"{problem}give one action of these shapes, within the bounds."
            )
        return arrays


def _as_array(spec: Any, value: Any) -> np.ndarray:
    given = np.asarray(value)
    is_floating = np.issubdtype(spec.dtype, np.floating)
    if not (is_floating or bounds.keeps_values(given, spec.dtype)):
        raise ValueError(f"{value!r} is not of dtype {np.dtype(spec.dtype).name}.")
    return given.astype(spec.dtype)
