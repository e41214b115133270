"""Turns the arrays of episodes into frames, with the boundary after each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from tfrl.specs import array_spec, bounds, matching, tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

# The part of the range by which actions may be out of bounds.
_ROUNDING = 1e-4


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
    terminated = as_flags("terminations", terminations)
    length = len(terminated)
    for name, nest, expected in (
        ("observations", observations, length + 1),
        ("actions", actions, length),
        ("rewards", rewards, length),
    ):
        leaves = tf.nest.flatten(as_arrays(nest, name))
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
        observation=as_arrays(observations),
        action=tf.nest.map_structure(
            lambda a: np.concatenate([a, a[-1:]]), as_arrays(actions)
        ),
        policy_info=(),
        next_step_type=np.append(step_type[1:], np.int32(ts.StepType.FIRST)),
        reward=np.append(np.asarray(rewards, np.float32), np.float32(0)),
        discount=np.append(1 - terminated.astype(np.float32), np.float32(1)),
    )


def as_arrays(nest: Any, name: str = "data") -> Any:
    """Returns a nest with arrays of numbers as leaves; a list becomes one array.

    Args:
      nest: The nest.
      name: Its name, for errors.

    Raises:
      ValueError: A leaf is no array of numbers.
    """
    if isinstance(nest, dict):
        return {key: as_arrays(part, f"{name}/{key}") for key, part in nest.items()}
    if isinstance(nest, tuple):
        return tuple(as_arrays(part, f"{name}/{i}") for i, part in enumerate(nest))
    try:
        array = np.asarray(nest)
    except ValueError:  # The rows have several shapes.
        array = np.empty(0, object)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name}: got rows of several shapes, or no numbers, expected one array of "
            "numbers with rows of one shape; give each step as many numbers."
        )
    return array


def as_flags(name: str, values: Any) -> np.ndarray:
    """Returns booleans `[N]` for booleans or numbers `[N]` or `[N, 1]`.

    Raises:
      ValueError: A number is neither 0 nor 1, or there are several in a row.
    """
    array = as_arrays(np.asarray(values), name)
    wrong = array[~np.isin(array, (0, 1))]
    if wrong.size or array.shape[:1] != (array.size,):
        found = wrong.flat[0] if wrong.size else f"an array of shape {array.shape}"
        raise ValueError(
            f"{name}: got {found}, expected True or False, or 1 or 0, for each step; "
            "give 1 where an episode ends, and elsewhere 0."
        )
    return array.astype(bool).reshape(-1)


def dataset_of(
    read: Callable[[], Iterator[trajectory.Trajectory]],
    spec: Any,
    where: str,
    text_if_empty: str,
) -> tf.data.Dataset:
    """Returns the frames of episodes, in order, as `Trajectory`s.

    Args:
      read: Returns the episodes, as `frames_of_episode` makes them, from the first one.
      spec: The `Trajectory` of specs of the frames, such as an agent's
        `collect_data_spec`, to whose dtypes arrays are converted. None takes the shapes
        and dtypes of the first episode, with float32 instead of float64.
      where: Where the episodes are from, for errors.
      text_if_empty: The error if there are none.

    Raises:
      ValueError: There are no episodes, or they do not match `spec`.
    """
    first = next(read(), None)
    if first is None:
        raise ValueError(text_if_empty)
    spec = _spec_of(first) if spec is None else _without_info(spec)
    _check_frames(first, spec, where)

    def converted() -> Iterator[Any]:
        for frames in read():
            _check_frames(frames, spec, where)
            yield tf.nest.map_structure(
                lambda array, leaf: np.asarray(array, leaf.dtype.as_numpy_dtype),
                frames,
                spec,
            )

    signature = tf.nest.map_structure(
        lambda leaf: tf.TensorSpec([None, *leaf.shape], leaf.dtype), spec
    )
    # Whole episodes cross from Python, not single frames.
    return tf.data.Dataset.from_generator(
        converted, output_signature=signature
    ).unbatch()


def _spec_of(frames: trajectory.Trajectory) -> trajectory.Trajectory:
    def leaf(array: np.ndarray) -> tf.TensorSpec:
        dtype = np.float32 if array.dtype == np.float64 else array.dtype
        return tf.TensorSpec(array.shape[1:], dtype)

    return tf.nest.map_structure(leaf, frames)


def _without_info(spec: trajectory.Trajectory) -> trajectory.Trajectory:
    if tf.nest.flatten(spec.policy_info):
        raise ValueError(
            f"spec.policy_info: got {spec.policy_info}, expected (), since recorded "
            "arrays have no information of the policy; leave it out of the policy."
        )
    return spec


def _check_frames(frames: Any, spec: Any, where: str) -> None:
    """Raises a ValueError unless an episode follows `spec`.

    It checks structure and shapes, that floats are finite, that integers are whole, and
    that integers with bounds and actions lie within their bounds. Observations of
    floats may be out of bounds, as in many environments.
    """
    try:
        tf.nest.assert_same_structure(frames, spec)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{where}: the episodes are not nested as spec is: {error}; build the "
            "agent from the specs of the environment that was recorded."
        ) from None
    paths = [matching.join(*path) for path, _ in tree.flatten_with_path(frames)]
    for path, array, leaf in zip(
        paths, tf.nest.flatten(frames), tf.nest.flatten(spec), strict=True
    ):
        if not leaf.shape.is_compatible_with(array.shape[1:]):
            raise ValueError(
                f"{where}: {path}: got shape {array.shape[1:]} a step, expected "
                f"{tuple(leaf.shape)}; build the agent from the specs of the "
                "environment that was recorded."
            )
        problem = _problem(array, leaf) or (
            _far_action(array, leaf) if path.startswith("action") else ""
        )
        if problem:
            raise ValueError(
                f"{where}: {path}: {problem}; correct the data, or choose the agent "
                "and the environment that they are from."
            )


def _problem(array: np.ndarray, spec: tf.TensorSpec) -> str:
    """Returns what is wrong with the numbers of an array; an empty text if nothing."""
    if not (spec.dtype.is_integer or spec.dtype.is_floating):
        return ""
    if array.dtype.kind == "f" and not bounds.is_finite_in_float32(array):
        found = bounds.describe_not_finite_in_float32(array)
        return f"got {found}, expected finite numbers"
    if spec.dtype.is_floating:
        return ""
    dtype = spec.dtype.as_numpy_dtype
    whole = array.astype(dtype)
    if not bounds.keeps_values(array, dtype):
        found = array[whole != array][0]
        return f"got {found}, expected integers of dtype {spec.dtype.name}"
    bounded = array_spec.BoundedArraySpec.from_spec(tensor_spec.to_array_spec(spec))
    return matching.outlier(whole, bounded) or ""


def _far_action(array: np.ndarray, spec: tf.TensorSpec) -> str:
    """Says which float is out of bounds by more than rounding; empty for none."""
    if not (spec.dtype.is_floating and tensor_spec.is_bounded(spec)):
        return ""
    low, high = (bound.astype(np.float64) for bound in (spec.minimum, spec.maximum))
    room = _ROUNDING * (high - low)
    wide = array_spec.BoundedArraySpec(spec.shape, np.float64, low - room, high + room)
    problem = matching.outlier(array, wide)
    told = f"{problem}; scale actions, or clip them if the environment does"
    return told if problem else ""
