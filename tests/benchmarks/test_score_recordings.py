"""Recordings of the score table: made whole or not at all, and read as steps."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import score_entries, score_recordings
from tfrl import specs
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import example_encoding_dataset


def test_the_recording_is_there_whole_or_not_at_all(tmp_path, monkeypatch):
    """The first job succeeds, and the second ends within its file."""
    entry = score_entries.HALF_TRAINED.entry
    recording = score_entries.Recording(entry, tmp_path)
    done = []

    def run_all(made, most, is_stopped, on_end):
        (job,) = made
        done.append(job.module)
        (output,) = [f for f in job.arguments if f.startswith("--output=")] or [""]
        if output:
            for suffix in ("", ".spec"):
                pathlib.Path(output.partition("=")[2] + suffix).write_text("frames")
        return [1 if output and len(done) == 2 else 0]

    monkeypatch.setattr(score_recordings.jobs, "run_all", run_all)
    with pytest.raises(RuntimeError, match="tfrl made no recording"):
        score_recordings.make(recording, lambda: False)
    assert not recording.path.exists()
    score_recordings.make(recording, lambda: False)
    assert recording.path.read_text() == "frames"
    assert (tmp_path / "replay.tfrecord.spec").read_text() == "frames"
    assert done == ["tfrl.experiments.children", "tfrl"] * 2


@pytest.mark.parametrize("discount", [0.0, 1.0])
def test_steps_say_how_their_episodes_end(tmp_path, discount):
    """Two steps to an end, the frame between the episodes, and one step more."""
    spec = trajectory.Trajectory(
        step_type=tf.TensorSpec([], tf.int32),
        observation=specs.TensorSpec([1], tf.float32),
        action=specs.TensorSpec([], tf.float32),
        policy_info=(),
        next_step_type=tf.TensorSpec([], tf.int32),
        reward=tf.TensorSpec([], tf.float32),
        discount=tf.TensorSpec([], tf.float32),
    )
    recording = score_entries.Recording(score_entries.HALF_TRAINED.entry, tmp_path)
    write = example_encoding_dataset.TFRecordObserver(str(recording.path), spec)
    first, mid, last = ts.StepType.FIRST, ts.StepType.MID, ts.StepType.LAST
    kinds = [(first, mid), (mid, last), (last, first), (first, mid)]
    for number, (kind, next_kind) in enumerate(kinds):
        write(
            trajectory.Trajectory(
                step_type=np.array([kind], np.int32),
                observation=np.array([[number]], np.float32),
                action=np.array([10 * number], np.float32),
                policy_info=(),
                next_step_type=np.array([next_kind], np.int32),
                reward=np.array([100 * number], np.float32),
                discount=np.array([discount if next_kind == last else 1], np.float32),
            )
        )
    write.close()
    steps = score_recordings.steps_of(recording)
    np.testing.assert_array_equal(steps["observations"], [[0], [1], [3]])
    np.testing.assert_array_equal(steps["actions"], [0, 10, 30])
    np.testing.assert_array_equal(steps["rewards"], [0, 100, 300])
    is_terminal = discount == 0.0
    np.testing.assert_array_equal(steps["terminals"], [False, is_terminal, False])
    np.testing.assert_array_equal(steps["timeouts"], [False, not is_terminal, True])
