"""Turns the arrays of one episode into frames, with the boundary after it."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory


def frames_of_episode(
    observations: Any,
    actions: Any,
    rewards: Any,
    terminations: Any,
) -> trajectory.Trajectory:
    """Returns the frames of an episode of `T` steps, and its boundary, `[T + 1, ...]`.

    The boundary holds the last observation, so that a truncated episode is
    bootstrapped, and repeats the last action. An episode that does not end by a
    termination was truncated: its last discount is 1.

    Args:
      observations: A nest of arrays, `[T + 1, ...]`.
      actions: A nest of arrays, `[T, ...]`.
      rewards: An array `[T]`.
      terminations: Booleans `[T]`; only the last may be true.

    Raises:
      ValueError: The lengths do not match, there is no step, or the episode ends
        before its last step.
    """
    terminated = np.asarray(terminations, bool)
    length = len(terminated)
    for name, nest, expected in (
        ("observations", observations, length + 1),
        ("actions", actions, length),
        ("rewards", rewards, length),
    ):
        leaves = tf.nest.flatten(tf.nest.map_structure(np.asarray, _arrays(nest)))
        found = sorted({len(leaf) for leaf in leaves})
        if found != [expected] or length < 1:
            raise ValueError(
                f"{name}: got length {found} in an episode with {length} terminations, "
                f"expected at least one of these, and {expected} {name}; an episode of "
                "T steps has T + 1 observations."
            )
    if terminated[:-1].any():
        raise ValueError(
            f"terminations: got True at step {int(terminated.argmax())} of {length}, "
            "expected it at the last step only; give each episode on its own."
        )
    step_type = np.full(length + 1, ts.StepType.MID, np.int32)
    step_type[0], step_type[-1] = ts.StepType.FIRST, ts.StepType.LAST
    return trajectory.Trajectory(
        step_type=step_type,
        observation=_arrays(observations),
        action=tf.nest.map_structure(
            lambda a: np.concatenate([a, a[-1:]]), _arrays(actions)
        ),
        policy_info=(),
        next_step_type=np.append(step_type[1:], np.int32(ts.StepType.FIRST)),
        reward=np.append(np.asarray(rewards, np.float32), np.float32(0)),
        discount=np.append(1 - terminated.astype(np.float32), np.float32(1)),
    )


def _arrays(nest: Any) -> Any:
    """Converts the leaves to arrays; a list becomes one array."""
    if isinstance(nest, dict):
        return {name: _arrays(part) for name, part in nest.items()}
    if isinstance(nest, tuple):
        return tuple(map(_arrays, nest))
    return np.asarray(nest)
