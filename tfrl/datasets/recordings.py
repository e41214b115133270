"""Reads the recordings of `utils.example_encoding_dataset`, in TF-Agents' format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import example_encoding_dataset


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
