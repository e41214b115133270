"""Where episodes begin and end in rows that hold several, worked by hand."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.trajectories import episodes, trajectory

FIRST, MID, LAST = 0, 1, 2

# Two episodes and a third that goes on; one that is cut off, then a whole one; an
# episode of a fixed length, and zeros.
STEP_TYPE = [
    [FIRST, MID, LAST, FIRST, LAST, FIRST],
    [MID, MID, FIRST, MID, LAST, FIRST],
    [FIRST, MID, LAST, LAST, FIRST, FIRST],
]
NEXT_STEP_TYPE = [
    [MID, LAST, FIRST, LAST, FIRST, MID],
    [MID, MID, MID, LAST, FIRST, MID],
    [MID, LAST, LAST, FIRST, FIRST, FIRST],
]


@pytest.fixture
def frames():
    zeros = tf.zeros([3, 6])
    return trajectory.Trajectory(
        tf.constant(STEP_TYPE),
        zeros,
        zeros,
        (),
        tf.constant(NEXT_STEP_TYPE),
        zeros,
        zeros,
    )


def test_a_frame_follows_if_the_step_types_agree(frames):
    np.testing.assert_array_equal(
        episodes.follows(frames),
        [[1, 1, 1, 1, 1], [1, 0, 1, 1, 1], [1, 1, 1, 1, 1]],
    )


def test_a_row_is_cut_where_nothing_follows_but_not_at_its_end(frames):
    cut = np.zeros([3, 6])
    cut[1, 1] = 1
    np.testing.assert_array_equal(episodes.is_cut(frames), cut)


def test_frames_in_complete_episodes(frames):
    inside = episodes.in_complete_episode(frames)
    assert inside.dtype == tf.float32
    np.testing.assert_array_equal(
        inside, [[1, 1, 0, 1, 0, 0], [0, 0, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]]
    )


def test_padding_leads_from_first_to_first_or_from_last_to_last(frames):
    padding = np.zeros([3, 6])
    padding[2, [2, 4, 5]] = 1
    np.testing.assert_array_equal(episodes.is_padding(frames), padding)


def test_count_of_episodes_that_end(frames):
    assert episodes.count(frames) == 4


def test_last_observations_are_in_the_boundaries_that_follow(frames):
    expected = np.zeros([3, 6])
    expected[[0, 0, 1, 2, 2], [1, 3, 3, 1, 2]] = 1
    np.testing.assert_array_equal(episodes.last_observation_follows(frames), expected)
    without_the_end = tf.nest.map_structure(lambda t: t[:, :2], frames)
    assert not episodes.last_observation_follows(without_the_end)[:, 1].numpy().any()


def test_what_comes_after_the_first_episodes_is_unfinished(frames):
    kept = episodes.keep_first(frames, 1)
    np.testing.assert_array_equal(
        episodes.in_complete_episode(kept),
        [[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]],
    )
    np.testing.assert_array_equal(
        episodes.is_padding(kept)[2], episodes.is_padding(frames)[2]
    )


def test_a_frame_is_appended_to_every_row(frames):
    last = tf.nest.map_structure(lambda t: t[:, 1], frames)
    longer = episodes.append(frames, last)
    np.testing.assert_array_equal(longer.step_type[:, :6], STEP_TYPE)
    np.testing.assert_array_equal(longer.step_type[:, 6], [MID, MID, MID])


@pytest.mark.parametrize("position", [0, 4, 6])
def test_a_frame_is_put_at_a_position_of_every_row(frames, position):
    frame = tf.nest.map_structure(lambda t: t[:, 2], frames)
    expected = np.array(STEP_TYPE)
    expected[:, position : position + 1] = [[LAST], [FIRST], [LAST]]
    put = episodes.put(frames, tf.constant(position, tf.int64), frame)
    np.testing.assert_array_equal(put.step_type, expected)
