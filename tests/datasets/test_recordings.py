import numpy as np
import pytest
import tensorflow as tf

from tfrl import datasets
from tfrl.specs import array_spec
from tfrl.trajectories import trajectory
from tfrl.utils import example_encoding_dataset

SPEC = trajectory.Trajectory(
    step_type=array_spec.ArraySpec([], np.int32),
    observation=array_spec.ArraySpec([1], np.float32),
    action=array_spec.ArraySpec([], np.int64),
    policy_info=(),
    next_step_type=array_spec.ArraySpec([], np.int32),
    reward=array_spec.ArraySpec([], np.float32),
    discount=array_spec.ArraySpec([], np.float32),
)


def record(path, start, part):
    """Records a part of the three steps and the boundary of an episode."""
    whole = datasets.frames_of_episode(
        np.arange(start, start + 4, dtype=np.float32)[:, None],
        np.arange(3),
        np.ones(3),
        [False, False, True],
    )
    observer = example_encoding_dataset.TFRecordObserver(path, SPEC, py_mode=True)
    for i in range(*part):
        observer(tf.nest.map_structure(lambda a, i=i: a[i], whole))
    observer.close()
    return path


def test_each_file_begins_an_episode(tmp_path):
    """One ends within an episode, one holds a boundary alone, one begins within."""
    parts = [(0, 2), (3, 4), (1, 4)]
    files = [
        record(str(tmp_path / f"{i}.tfrecord"), 10 * i, part)
        for i, part in enumerate(parts)
    ]
    frames = datasets.load_recordings(files)
    held = list(frames.as_numpy_iterator())
    seen = [int(frame.observation[0]) for frame in held]
    assert seen == [0, 1, 21, 22, 23]
    assert [int(f.step_type) for f in held] == [0, 1, 0, 1, 2]
    steps = [
        (int(s.time_step.observation[0]), int(s.next_time_step.observation[0]))
        for s in datasets.transitions(frames).as_numpy_iterator()
    ]
    assert steps == [(0, 1), (21, 22), (22, 23)]


def test_missing_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="files: got none"):
        datasets.load_recordings([])
    with pytest.raises(FileNotFoundError):
        datasets.load_recordings(str(tmp_path / "none"))
