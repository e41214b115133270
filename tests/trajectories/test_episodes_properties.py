"""Masks at the ends of episodes against loops over the frames."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.trajectories.rows import (
    BATCH,
    LAST,
    LENGTH,
    MID,
    ROWS,
    frames_of,
)
from tfrl.trajectories import episodes


def is_cut(row, t):
    return t < LENGTH - 1 and row[1][t] != row[0][t + 1]


def is_complete(row, t):
    """Whether the episode of frame `t` reaches its end before a cut."""
    if row[0][t] == LAST:
        return False
    while row[1][t] != LAST:
        if is_cut(row, t) or t == LENGTH - 1:
            return False
        t += 1
    return True


def table(function, drawn):
    return [[function(row, t) for t in range(LENGTH)] for row in drawn]


@given(ROWS)
def test_marks_are_those_of_loops(drawn):
    frames = frames_of(drawn)
    got = episodes.in_complete_episode(frames)
    np.testing.assert_array_equal(got, table(is_complete, drawn))
    np.testing.assert_array_equal(episodes.is_cut(frames), table(is_cut, drawn))
    ends = table(lambda row, t: row[0][t] != LAST == row[1][t], drawn)
    assert episodes.count(frames) == np.sum(ends)
    np.testing.assert_array_equal(
        episodes.last_observation_follows(frames),
        table(
            lambda row, t: (
                row[1][t] == LAST and t < LENGTH - 1 and row[0][t + 1] == LAST
            ),
            drawn,
        ),
    )


@given(ROWS, st.integers(0, 3))
def test_the_first_episodes_are_kept(drawn, number):
    kept = episodes.keep_first(frames_of(drawn), number).next_step_type.numpy()
    for b in range(BATCH):
        ended = 0
        for t, (before, after) in enumerate(zip(*drawn[b][:2], strict=True)):
            is_padding = before == after != MID
            assert kept[b, t] == (after if ended < number or is_padding else MID)
            ended += before != LAST == after
