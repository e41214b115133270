"""Writes episodes of RLDS, as TensorFlow Datasets has them, into a replay service.

A dataset of RLDS has episodes, dictionaries whose "steps" are a dataset of steps. A
step has the keys of `get_rlds_step_features`; its reward and discount follow its
action. The package `rlds` is not needed (Ramos et al., "RLDS: an ecosystem to generate,
share and use datasets in reinforcement learning", 2021, arXiv:2111.02767).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

# Takes a step and the next one, and returns the policy info of the first.
PolicyInfoFn = Callable[[dict[str, Any], dict[str, Any]], Any]


def get_rlds_step_features() -> list[str]:
    """Returns the keys that each step must have."""
    flags = ["is_first", "is_last", "is_terminal"]
    return ["observation", "action", "reward", "discount", *flags]


def create_trajectory_data_spec(rlds_data: tf.data.Dataset) -> trajectory.Trajectory:
    """Returns the specs of the frames of a dataset, for tables and buffers.

    Args:
      rlds_data: A dataset of episodes.

    Raises:
      ValueError: Episodes have no steps, or steps lack a key.
    """
    spec = _steps(rlds_data).element_spec
    time_step_spec = ts.time_step_spec(spec["observation"], spec["reward"])
    action_spec = policy_step.PolicyStep(spec["action"])
    return trajectory.from_transition(time_step_spec, action_spec, time_step_spec)


def convert_rlds_to_trajectories(
    rlds_data: tf.data.Dataset, policy_info_fn: PolicyInfoFn | None = None
) -> tf.data.Dataset:
    """Returns the frames of all episodes, in order, each followed by a boundary.

    An episode of a single step is a boundary alone. The discount is 0 in the frame that
    reaches a terminal step, too, so that its value is never bootstrapped; TF-Agents has
    the 0 in the boundary only.

    Args:
      rlds_data: A dataset of episodes.
      policy_info_fn: Makes the policy info; None leaves it empty.

    Raises:
      ValueError: See `create_trajectory_data_spec`.
      tf.errors.InvalidArgumentError: When it is read: an episode does not begin with a
        first step, does not end with a last one, or has a terminal one in between.
    """
    steps = _steps(rlds_data)

    def zeros(spec: tf.TensorSpec) -> tf.Tensor:
        return tf.zeros([size or 0 for size in spec.shape], spec.dtype)

    def frame(now: Any, after: Any) -> trajectory.Trajectory:
        _check(now, after)
        begins, ends = _step_type(now), _step_type(after)
        alone = now["is_first"] & after["is_first"]
        is_over = (now["is_last"] & now["is_terminal"]) | (
            ~now["is_last"] & after["is_terminal"]
        )
        discount = now["discount"]
        return trajectory.Trajectory(
            tf.where(alone, ts.StepType.LAST, begins),
            now["observation"],
            now["action"],
            policy_info_fn(now, after) if policy_info_fn else (),
            tf.where(alone, ts.StepType.LAST, ends),
            now["reward"],
            tf.where(is_over, tf.zeros_like(discount), discount),
        )

    nothing = tf.nest.map_structure(zeros, steps.element_spec)
    # After the last episode, as after the others, a first step begins.
    end = tf.data.Dataset.from_tensors({**nothing, "is_first": tf.constant(True)})
    pairs = steps.concatenate(end).scan(
        nothing, lambda now, after: (after, (now, after))
    )
    return pairs.skip(1).map(frame)


def push_rlds_to_reverb(
    rlds_data: tf.data.Dataset,
    reverb_observer: Any,
    policy_info_fn: PolicyInfoFn | None = None,
) -> int:
    """Writes the frames of all episodes, and returns their number.

    Args:
      rlds_data: A dataset of episodes.
      reverb_observer: A `ReverbAddEpisodeObserver` or `ReverbAddTrajectoryObserver`.
      policy_info_fn: See `convert_rlds_to_trajectories`.

    Raises:
      ValueError: The table has other specs; or see `create_trajectory_data_spec`.
      tf.errors.InvalidArgumentError: See `convert_rlds_to_trajectories`.
    """
    frames = convert_rlds_to_trajectories(rlds_data, policy_info_fn)
    found = reverb_observer.get_table_signature()
    expected = tensor_spec.add_outer_dim(frames.element_spec)
    if not _same(found, expected):
        raise ValueError(
            "Replay buffer table signature spec should match RLDS data spec, got "
            f"{found}, expected {expected}; make the table with "
            "create_trajectory_data_spec(rlds_data)."
        )
    number = 0
    for each in frames:
        reverb_observer(each)
        number += 1
    return number


def _same(found: Any, expected: Any) -> bool:
    """Whether two nests of specs have the same shapes and dtypes."""
    if found is None:
        return True
    pairs = tf.nest.flatten(found), tf.nest.flatten(expected)
    return len(pairs[0]) == len(pairs[1]) and all(
        x.dtype == y.dtype and x.shape.is_compatible_with(y.shape)
        for x, y in zip(*pairs, strict=True)
    )


def _steps(rlds_data: tf.data.Dataset) -> tf.data.Dataset:
    """Returns the steps of all episodes, in order."""
    spec = rlds_data.element_spec
    if not isinstance(spec, dict) or "steps" not in spec:
        raise ValueError(
            "rlds_data: No dataset representing RLDS steps exist in the data, got "
            f"{spec}; give a dataset of episodes."
        )
    steps = rlds_data.flat_map(lambda episode: episode["steps"])
    missing = [x for x in get_rlds_step_features() if x not in steps.element_spec]
    if missing:
        raise ValueError(
            "rlds_data: Invalid RLDS step spec. Features expected are "
            f"{get_rlds_step_features()}, but found {list(steps.element_spec)}; add "
            f"{missing}."
        )
    return steps


def _step_type(step: Any) -> tf.Tensor:
    kind = tf.where(step["is_last"], ts.StepType.LAST, ts.StepType.MID)
    return tf.where(step["is_first"], ts.StepType.FIRST, kind)


def _check(now: Any, after: Any) -> None:
    """Raises an error when it runs unless two steps can follow each other."""
    for is_right, text in (
        (
            now["is_last"] | ~now["is_terminal"],
            "Terminal step must be the last step of an episode.",
        ),
        (
            now["is_last"] | now["is_first"] | ~after["is_first"],
            "Mid step should not be followed by a first step.",
        ),
        (
            ~now["is_last"] | after["is_first"],
            "Last step of an episode must be followed by a first step.",
        ),
    ):
        tf.debugging.Assert(is_right, [text])
