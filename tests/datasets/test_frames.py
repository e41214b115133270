import numpy as np
import pytest
import tensorflow as tf

from tfrl import datasets, replay_buffers
from tfrl.specs import tensor_spec
from tfrl.trajectories import trajectory

FIRST, MID, LAST = 0, 1, 2


def episode(start, length, terminated):
    return datasets.frames_of_episode(
        observations=np.arange(start, start + length + 1, dtype=np.float32)[:, None],
        actions=np.arange(length),
        rewards=np.full(length, start, np.float64),
        terminations=[False] * (length - 1) + [terminated],
    )


EPISODES = [episode(10, 3, True), episode(20, 1, False), episode(30, 2, False)]


@pytest.fixture(scope="module")
def frames():
    """A termination, a truncation of one step, and an episode that was cut off."""
    whole = tf.nest.map_structure(lambda *a: np.concatenate(a), *EPISODES)
    whole = tf.nest.map_structure(lambda a: a[:-2], whole)
    return tf.data.Dataset.from_tensor_slices(whole)


def test_frames_of_an_episode():
    frames = EPISODES[0]
    np.testing.assert_array_equal(frames.step_type, [FIRST, MID, MID, LAST])
    np.testing.assert_array_equal(frames.next_step_type, [MID, MID, LAST, FIRST])
    np.testing.assert_array_equal(frames.observation[:, 0], [10, 11, 12, 13])
    np.testing.assert_array_equal(frames.reward, [10, 10, 10, 0])
    np.testing.assert_array_equal(frames.discount, [1, 1, 0, 1])
    np.testing.assert_array_equal(EPISODES[1].discount, [1, 1])
    np.testing.assert_array_equal(EPISODES[1].next_step_type, [LAST, FIRST])


def test_terminations_may_be_a_tuple():
    zeros = np.zeros(3), np.zeros(2), np.zeros(2)
    frames = datasets.frames_of_episode(*zeros, (False, True))
    np.testing.assert_array_equal(frames.discount, [1, 0, 1])


def test_what_is_no_episode_is_refused():
    with pytest.raises(ValueError, match=r"observations: got length \[2\]"):
        datasets.frames_of_episode(np.zeros(2), np.zeros(2), np.zeros(2), [0, 1])
    with pytest.raises(ValueError, match="True at step 0 of 2"):
        datasets.frames_of_episode(np.zeros(3), np.zeros(2), np.zeros(2), [1, 0])
    with pytest.raises(ValueError, match=r"terminations: got 0.5, expected True or"):
        datasets.frames_of_episode(np.zeros(3), np.zeros(2), np.zeros(2), [0, 0.5])
    with pytest.raises(ValueError, match=r"observations: got rows of several shapes"):
        datasets.frames_of_episode([[1], [2, 3]], np.zeros(1), np.zeros(1), [1])


def test_transitions_leave_out_boundaries_and_what_was_not_recorded(frames):
    steps = list(datasets.transitions(frames).as_numpy_iterator())
    first, second = (
        [float(getattr(step, name).observation[0]) for step in steps]
        for name in ("time_step", "next_time_step")
    )
    assert first == [10, 11, 12, 20]
    assert second == [11, 12, 13, 21]
    assert [float(s.next_time_step.discount) for s in steps] == [1, 1, 0, 1]
    assert [int(s.next_time_step.step_type) for s in steps] == [MID, MID, LAST, LAST]


def test_sequences_are_all_windows(frames):
    windows = list(datasets.sequences(frames, 3).as_numpy_iterator())
    assert isinstance(windows[0], trajectory.Trajectory)
    observations = [list(map(int, window.observation[:, 0])) for window in windows]
    everything = [10, 11, 12, 13, 20, 21, 30]
    assert observations == [everything[i : i + 3] for i in range(5)]


def test_returns_of_whole_episodes(frames):
    np.testing.assert_array_equal(datasets.episode_returns(frames), [30, 20])


SPEC = trajectory.Trajectory(
    step_type=tf.TensorSpec([], tf.int32),
    observation=tf.TensorSpec([1], tf.float32),
    action=tf.TensorSpec([], tf.int64),
    policy_info=(),
    next_step_type=tf.TensorSpec([], tf.int32),
    reward=tf.TensorSpec([], tf.float32),
    discount=tf.TensorSpec([], tf.float32),
)
BUFFERS = {
    "uniform": lambda: replay_buffers.TFUniformReplayBuffer(SPEC, 1, max_length=20),
    "python": lambda: replay_buffers.py_uniform_replay_buffer.PyUniformReplayBuffer(
        tensor_spec.to_nest_array_spec(SPEC), 20
    ),
    "episodic": lambda: (
        replay_buffers.episodic_replay_buffer.StatefulEpisodicReplayBuffer(
            replay_buffers.EpisodicReplayBuffer(SPEC, 20), 1
        )
    ),
}


@pytest.mark.parametrize("name", BUFFERS)
def test_a_buffer_holds_the_frames_in_order(name, frames, monkeypatch):
    """A block of four is added by a compiled program where possible, the rest not."""
    monkeypatch.setattr(datasets.frames, "_BLOCK", 4)
    replay_buffer = BUFFERS[name]()
    assert datasets.fill(replay_buffer, frames) == 7
    assert int(replay_buffer.num_frames()) == 7
    if name == "uniform":
        held = replay_buffer.gather_all()
        expected = next(iter(frames.batch(7)))
        for one, other in zip(
            tf.nest.flatten(held), tf.nest.flatten(expected), strict=True
        ):
            np.testing.assert_array_equal(one[0], other)


def test_a_buffer_without_room_or_with_rows_is_refused(frames):
    small = replay_buffers.TFUniformReplayBuffer(SPEC, 1, max_length=6)
    with pytest.raises(ValueError, match="at least 7"):
        datasets.fill(small, frames)
    rows = replay_buffers.TFUniformReplayBuffer(SPEC, 2, max_length=20)
    with pytest.raises(ValueError, match="batch_size=2"):
        datasets.fill(rows, frames)
