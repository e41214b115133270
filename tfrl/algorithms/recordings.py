"""Records the episodes of a policy in a file, to learn from offline."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tfrl import environments
from tfrl.compilation import trace_counts
from tfrl.system import files, paths

# Where `tfrl record` writes, and where algorithms look for data, by default.
FOLDER = "logs/recordings/{env}"


def in_folder_of(path: str, environment: str) -> str:
    """Returns a path or a pattern with the environment's name for its `{env}`.

    Args:
      path: The path, such as `FOLDER`.
      environment: The environment's name; empty if it has none.
    """
    return path.replace("{env}", paths.file_name(environment))


@contextlib.contextmanager
def writing(
    output: str | os.PathLike, spec: Any, *, py_mode: bool = False
) -> Iterator[Callable[[Any], None]]:
    """Opens a recording; it and its spec appear, or replace older ones, at the end.

    If an error or the end of the process prevents that, older ones stay.

    Args:
      output: The file to write.
      spec: The spec of a frame.
      py_mode: See `TFRecordObserver`.

    Yields:
      A function that adds a frame.
    """
    # Not at the top: --help does not wait for TensorFlow.
    import tensorflow as tf

    from tfrl.utils import example_encoding_dataset

    folder, name = os.path.split(os.fspath(output))
    # Patterns such as *.tfrecord do not match it.
    unfinished = os.path.join(folder, f".{name}.unfinished")
    endings = (example_encoding_dataset.SPEC_FILE_EXTENSION, "")
    for ending in endings:
        files.remove(unfinished + ending)  # It may be a link.
    try:
        recorder = example_encoding_dataset.TFRecordObserver(unfinished, spec, py_mode)
        with contextlib.closing(recorder):
            yield recorder
        for ending in endings:
            tf.io.gfile.rename(
                unfinished + ending, os.fspath(output) + ending, overwrite=True
            )
    finally:
        for ending in endings:
            if tf.io.gfile.exists(unfinished + ending):
                tf.io.gfile.remove(unfinished + ending)


def check_replaceable(
    argument: str, output: str | os.PathLike, *, overwrite: bool
) -> None:
    """Raises a ValueError if a recording may not be written; see `files`."""
    from tfrl.utils import example_encoding_dataset  # It imports TensorFlow.

    spec = os.fspath(output) + example_encoding_dataset.SPEC_FILE_EXTENSION
    is_own = os.path.exists(output) and os.path.exists(spec)
    for each in (output, spec):
        files.check_replaceable(argument, each, is_own=is_own, overwrite=overwrite)


def frame_spec(environment: environments.TFEnvironment) -> Any:
    """Returns the spec of a frame, as a `Trajectory` without policy info."""
    from tfrl.trajectories import policy_step, trajectory

    time_step_spec = environment.time_step_spec()
    action_spec = policy_step.PolicyStep(environment.action_spec(), (), ())
    return trajectory.from_transition(time_step_spec, action_spec, time_step_spec)


def record(
    environment: environments.TFEnvironment,
    policy: Any,
    num_episodes: int,
    output: str | os.PathLike,
    seed: int,
) -> int:
    """Writes the frames of whole episodes, each with its boundary; see `writing`.

    Returns the number of frames.

    Raises:
      ValueError: The policy was saved for other observations.
    """
    frames = play(environment, policy, num_episodes, seed)
    return write(frames, output, frame_spec(environment))


def write(frames: Iterable[Any], output: str | os.PathLike, spec: Any) -> int:
    """Writes frames, which are arrays without batch dimension; see `writing`.

    Returns the number of frames.
    """
    count = 0
    with writing(output, spec, py_mode=True) as recorder:
        for frame in frames:
            recorder(frame)
            count += 1
    return count


def play(
    environment: environments.TFEnvironment, policy: Any, num_episodes: int, seed: int
) -> Iterator[Any]:
    """Returns the frames of whole episodes, each with its boundary.

    The frames are `Trajectory`s of arrays without batch dimension or policy info. An
    episode of a bandit is a round.

    Raises:
      ValueError: The policy was saved for other observations.
    """
    # Not at the top: --help does not wait for TensorFlow.
    from tfrl.policies.saving import saved_model

    saved_model.check_environment(policy, environment)
    return _play(environment, policy, num_episodes, seed)


def _play(
    environment: environments.TFEnvironment, policy: Any, num_episodes: int, seed: int
) -> Iterator[Any]:
    import tensorflow as tf
    import tqdm

    from tfrl.trajectories import time_step as ts
    from tfrl.trajectories import trajectory

    time_step, state = environment.reset(), policy.get_initial_state(1)
    boundaries = frames = 0
    # It shows a bar on a terminal alone.
    bar = tqdm.tqdm(total=num_episodes, unit=" episodes", disable=None, leave=False)
    action = tf.function(trace_counts.of_one_object(policy.action), autograph=False)
    with bar:
        while boundaries < num_episodes:
            step = action(time_step, state, tf.constant([seed, frames], tf.int64))
            if environment.is_bandit and time_step.is_last()[0]:
                reached = ts.new_round(time_step)  # It has the observation already.
            else:
                reached = environment.step(step.action)
            # The environment clips actions of unbounded distributions.
            clipped = tf.nest.map_structure(
                _clip, step.action, environment.action_spec()
            )
            step = step._replace(info=(), action=clipped)
            frame = trajectory.from_transition(time_step, step, reached)
            yield tf.nest.map_structure(lambda tensor: tensor.numpy()[0], frame)
            if time_step.is_last()[0]:
                boundaries += 1
                bar.update()
            frames += 1
            time_step, state = reached, step.state


def _clip(action: Any, spec: Any) -> Any:
    """Returns actions within the bounds of their spec, if they are floats with bounds.

    Args:
      action: A tensor `[B, ...]`.
      spec: Its spec.
    """
    from tfrl.specs import tensor_spec
    from tfrl.utils import actions

    is_clipped = spec.dtype.is_floating and tensor_spec.is_bounded(spec)
    return actions.clip_to_spec(action, spec) if is_clipped else action
