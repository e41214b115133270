"""Checks that members of a batch agree, and joins and splits their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tree

from tfrl.environments.boundary import time_step_checker
from tfrl.trajectories import time_step as ts


def check_equal_specs(
    argument: str, time_step_specs: Sequence[Any], action_specs: Sequence[Any]
) -> None:
    """Checks that all members have the specs of the first.

    Args:
      argument: The name of the members in the message, such as "envs".
      time_step_specs: The time step spec of each member.
      action_specs: The action spec of each member.

    Raises:
      ValueError: If specs differ; the message names the member and the field.
    """
    for index in range(1, len(action_specs)):
        for specs, root in ((time_step_specs, ()), (action_specs, ("action",))):
            _check_equal(f"{argument}[{index}]", root, specs[index], specs[0])


def unstack_actions(batched_actions: Any) -> list[Any]:
    """Splits a batch of actions into the list of the members' actions.

    Args:
      batched_actions: A nest of arrays `[B, ...]`.

    Raises:
      ValueError: If the arrays differ in their first dimension, or an array has no
        dimensions.
    """
    leaves = [np.asarray(leaf) for leaf in tree.flatten(batched_actions)]
    sizes = {leaf.shape[:1] for leaf in leaves}
    if len(sizes) != 1 or () in sizes:
        raise ValueError(
            f"action: got leading dimensions {[leaf.shape[:1] for leaf in leaves]}, "
            "expected the batch size in all; give one action for each member."
        )
    return _members_of(batched_actions, leaves)


def unstack_actions_for(batched_actions: Any, batch_size: int) -> list[Any]:
    """Splits a batch of actions into the actions of `batch_size` members.

    Raises:
      ValueError: If the batch has another size.
    """
    leaves = [np.asarray(leaf) for leaf in tree.flatten(batched_actions)]
    sizes = [leaf.shape[:1] for leaf in leaves]
    if any(size != (batch_size,) for size in sizes):
        raise ValueError(
            f"action: got leading dimensions {sizes}, expected the batch size "
            f"{batch_size}; give one action for each member."
        )
    return _members_of(batched_actions, leaves)


def stack_time_steps(
    time_steps: Sequence[ts.TimeStep], spec: ts.TimeStep, name: Callable[[int], str]
) -> ts.TimeStep:
    """Stacks the members' time steps into one, `[B, ...]`.

    Args:
      time_steps: One time step for each member.
      spec: The time step spec of all members.
      name: Maps a member's index to its name in the message.

    Raises:
      ValueError: If the time steps do not fit together; the message names the member
        and the field.
    """
    try:
        return tree.map_structure(lambda *leaves: np.stack(leaves), *time_steps)
    except (TypeError, ValueError):
        flat = [
            time_step_checker.TimeStepChecker(name(index), spec).conform(time_step)
            for index, time_step in enumerate(time_steps)
        ]
        return tree.map_structure(lambda *leaves: np.stack(leaves), *flat)


def stack_infos(infos: list[Any]) -> Any:
    """Stacks the members' infos `[B, ...]`, or returns the list if they differ."""
    try:
        return tree.map_structure(lambda *leaves: np.stack(leaves), *infos)
    except (TypeError, ValueError):
        return infos


def _members_of(batched_actions: Any, leaves: list[np.ndarray]) -> list[Any]:
    return [
        tree.unflatten_as(batched_actions, [leaf[i] for leaf in leaves])
        for i in range(len(leaves[0]))
    ]


def _check_equal(where: str, root: tuple[str, ...], got: Any, expected: Any) -> None:
    if got == expected:
        return
    ours = {_join(root, path): leaf for path, leaf in tree.flatten_with_path(got)}
    first = {_join(root, path): leaf for path, leaf in tree.flatten_with_path(expected)}
    for field in sorted(ours.keys() | first.keys()):
        if ours.get(field) != first.get(field):
            raise ValueError(
                f"{where}: got the {field} spec {ours.get(field)}, expected the first "
                f"member's, {first.get(field)}; wrap the members so that they agree."
            )
    raise ValueError(
        f"{where}: got specs packed as {type(got).__name__}, expected the first "
        f"member's, {expected}; wrap the members so that they agree."
    )


def _join(root: tuple[str, ...], path: tuple[Any, ...]) -> str:
    return "/".join((*root, *map(str, path)))
