"""Recordings in TF-Agents' format, of `utils.example_encoding_dataset`.

`load_recordings` reads them; `play` returns the frames of a policy's episodes,
`from_checkpoint` those that a run has kept, and `write` writes frames to a file.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf
import tqdm

from tfrl import environments, replay_buffers
from tfrl.compilation import trace_counts
from tfrl.policies.saving import saved_model
from tfrl.savers import whole_checkpoints
from tfrl.specs import tensor_spec
from tfrl.system import files
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.utils import actions, example_encoding_dataset


def load_recordings(
    files: Sequence[str] | str, spec: Any = None, compress_image: bool | str = False
) -> tf.data.Dataset:
    """Returns the frames of recordings, one file after another, as `Trajectory`s.

    Each file begins a new episode; it does not continue the previous file's last
    episode.

    Args:
      files: The recordings, written by `TFRecordObserver`s.
      spec: See `example_encoding_dataset.load_tfrecord_dataset`.
      compress_image: See `example_encoding_dataset.load_tfrecord_dataset`.

    Raises:
      FileNotFoundError: A recording or its spec file is missing.
      ValueError: There is no file, or a file is damaged or of another kind.
    """
    files = [files] if isinstance(files, str) else list(files)
    if not files:
        raise ValueError(
            "files: got none, expected at least one; give the paths that were given to "
            "TFRecordObserver."
        )
    loaded = [_load(file, spec, compress_image) for file in files]
    frames = loaded[0]
    for file, dataset in zip(files[1:], loaded[1:], strict=True):
        if dataset.element_spec != frames.element_spec:
            raise ValueError(
                f"files: got {file!r} with {dataset.element_spec} and {files[0]!r} "
                f"with {frames.element_spec}, expected one spec; load them one by one."
            )
        frames = frames.concatenate(dataset)
    return frames


@tf.autograph.experimental.do_not_convert
def _load(file: str, spec: Any, compress_image: bool | str) -> tf.data.Dataset:
    frames = example_encoding_dataset.load_tfrecord_dataset(
        [file],
        as_trajectories=True,
        add_batch_dim=False,
        spec=spec,
        compress_image=compress_image,
    )
    # A boundary at the start belongs to an episode that was not recorded.
    numbered = frames.enumerate().filter(
        lambda i, frame: (i > 0) | (frame.step_type != ts.StepType.LAST)
    )

    def begin(i: tf.Tensor, frame: trajectory.Trajectory) -> trajectory.Trajectory:
        follows = (i > 0) | (frame.step_type == ts.StepType.FIRST)
        return frame._replace(
            step_type=tf.where(follows, frame.step_type, ts.StepType.FIRST)
        )

    return numbered.map(begin)


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
    spec = os.fspath(output) + example_encoding_dataset.SPEC_FILE_EXTENSION
    is_own = os.path.exists(output) and os.path.exists(spec)
    for each in (output, spec):
        files.check_replaceable(argument, each, is_own=is_own, overwrite=overwrite)


def frame_spec(environment: environments.TFEnvironment) -> Any:
    """Returns the spec of a frame, as a `Trajectory` without policy info."""
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
    policy = saved_model.for_environment(policy, environment)
    return _play(environment, policy, num_episodes, seed)


def _play(
    environment: environments.TFEnvironment, policy: Any, num_episodes: int, seed: int
) -> Iterator[Any]:
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
    is_clipped = spec.dtype.is_floating and tensor_spec.is_bounded(spec)
    return actions.clip_to_spec(action, spec) if is_clipped else action


def from_checkpoint(
    folder: str | os.PathLike,
    spec: Any,
    max_length: int,
    row_format: replay_buffers.RowFormat | None = None,
) -> Iterator[Any]:
    """Returns the frames of the replay buffer in the last checkpoint of a folder.

    Args:
      folder: The folder of checkpoints of a run in one environment.
      spec: The spec of a frame.
      max_length: The capacity of the run's replay buffer.
      row_format: Its format.

    Raises:
      ValueError: There are no frames in the checkpoint.
    """
    replay_buffer = replay_buffers.TFUniformReplayBuffer(
        spec, batch_size=1, max_length=max_length, row_format=row_format
    )
    checkpoint = tf.train.Checkpoint(replay_buffer=replay_buffer)
    whole_checkpoints.restore_latest(checkpoint, folder)
    if not replay_buffer.num_frames():
        raise ValueError(
            f"--replay: {str(folder)!r} holds no frames of the run's replay buffer, "
            "expected some; train.RunFiles(checkpoint_replay_buffer=True) saves it."
        )
    held = tf.nest.map_structure(lambda t: t.numpy()[0], replay_buffer.gather_all())
    return (
        tf.nest.map_structure(lambda array, i=i: array[i], held)
        for i in range(len(held.step_type))
    )
