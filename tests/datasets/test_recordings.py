"""Recordings in TF-Agents' format: the progress on a terminal, and the files."""

import contextlib
import os
import sys
import termios

import numpy as np
import pytest
import tensorflow as tf

import tfrl
from tfrl import bandits, datasets, environments, policies
from tfrl.datasets import recordings
from tfrl.specs import array_spec, tensor_spec
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


def test_a_bar_counts_the_episodes_on_a_terminal_alone(tmp_path, monkeypatch, capsys):
    environment = environments.TFPyEnvironment(
        environments.suite_gym.load("CartPole-v1", max_episode_steps=3)
    )
    policy = policies.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    frames = recordings.record(environment, policy, 2, str(tmp_path / "a.tfrecord"), 0)
    assert frames == 8  # Three steps and a boundary each.
    assert capsys.readouterr().err == ""
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (24, 100))
    with os.fdopen(slave, "w") as terminal, monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", terminal)
        recordings.record(environment, policy, 2, str(tmp_path / "b.tfrecord"), 0)
    shown = b""
    with contextlib.suppress(OSError):  # The end of a terminal is an error on Linux.
        while chunk := os.read(master, 10_000):
            shown += chunk
    os.close(master)
    assert b"| 0/2 [" in shown


def test_actions_are_recorded_as_the_environment_takes_them(tmp_path):
    environment = environments.TFPyEnvironment(
        environments.suite_gym.load("Pendulum-v1", max_episode_steps=2)
    )
    far = policies.FixedPolicy(
        np.float32([7]), environment.time_step_spec(), environment.action_spec()
    )
    frames = recordings.play(environment, far, 1, seed=0)
    assert [frame.action.tolist() for frame in frames] == [[2], [2], [2]]


FRAME = tensor_spec.TensorSpec([2], np.float32, "frame")


def write(path, *frames):
    with recordings.writing(path, FRAME, py_mode=True) as add:
        for frame in frames:
            add(np.full(2, frame, np.float32))


def read(path):
    frames = example_encoding_dataset.load_tfrecord_dataset(str(path))
    return [frame[0, 0] for frame in frames.as_numpy_iterator()]


def test_a_recording_that_is_killed_leaves_the_old_one(tmp_path):
    path = tmp_path / "a.tfrecord"
    write(path, 1, 2)
    unfinished = recordings.writing(path, FRAME, py_mode=True)
    add = unfinished.__enter__()
    add(np.full(2, 3, np.float32))
    assert list(tmp_path.glob("*.tfrecord")) == [path]
    assert read(path) == [1, 2]
    unfinished.__exit__(None, None, None)
    assert read(path) == [3]


def test_a_recording_that_fails_leaves_the_old_one_and_nothing_else(tmp_path):
    path = tmp_path / "a.tfrecord"
    write(path, 1, 2)
    with pytest.raises(ValueError, match="could not"):
        write(path, 3, "a word")
    assert read(path) == [1, 2]
    assert sorted(x.name for x in tmp_path.iterdir()) == [
        "a.tfrecord",
        "a.tfrecord.spec",
    ]


def test_each_round_of_a_bandit_is_an_episode_with_its_boundary():
    bandit = bandits.environments.load("LinearBandit-v0", batch_size=1, seed=0)
    policy = policies.RandomTFPolicy(bandit.time_step_spec(), bandit.action_spec())
    frames = list(recordings.play(bandit, policy, 3, seed=0))
    kinds = [(int(x.step_type), int(x.next_step_type)) for x in frames]
    assert kinds == [(0, 2), (2, 0)] * 3
    assert [float(x.reward) for x in frames[1::2]] == [0.0, 0.0, 0.0]
    # The round after a boundary has its observation.
    for boundary, begun in zip(frames[1::2], frames[2::2], strict=False):
        np.testing.assert_array_equal(boundary.observation, begun.observation)


def test_data_is_looked_for_in_the_folder_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = r"^data: got 'logs/recordings/CartPole-v1/\*\.tfrecord', where there is"
    with pytest.raises(ValueError, match=expected):
        tfrl.BC("CartPole-v1").build()
