"""Arrays of recorded steps, cut into episodes in any way, against loops."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tfrl import datasets
from tfrl.trajectories import time_step as ts

FIRST, MID, LAST = ts.StepType.FIRST, ts.StepType.MID, ts.StepType.LAST
# How each step ends: not, by a terminal, by a timeout, or by both.
ENDS = st.lists(st.sampled_from(["", "", "", "t", "o", "to"]), min_size=1, max_size=9)


def arrays_of(ends, has_next):
    """Steps of which number `i` leads from observation `10 i` to `10 i + 1`."""
    steps = np.arange(len(ends))
    arrays = {
        "observations": np.float32([10 * steps, -steps]).T,
        "actions": np.int64(steps),
        "rewards": np.float32(steps) / 4,
        "terminals": np.array(["t" in end for end in ends]),
        "timeouts": np.array(["o" in end for end in ends]),
    }
    if has_next:
        arrays["next_observations"] = np.float32([10 * steps + 1, -steps]).T
    return arrays


def expected_frames(ends, has_next):
    """Rows of (step type, next step type, observation, action, reward, discount)."""
    rows, episode = [], []
    for i, end in enumerate(ends):
        episode.append(i)
        if not end and i < len(ends) - 1:
            continue
        if not has_next and "t" not in end:
            last = 10 * episode.pop()  # The observation after it is not known.
        elif has_next:
            last = 10 * i + 1
        else:
            last = 10 * i  # It is not used.
        for place, step in enumerate(episode):
            rows.append(
                (
                    MID if place else FIRST,
                    LAST if place == len(episode) - 1 else MID,
                    10 * step,
                    step,
                    step / 4,
                    0.0 if "t" in ends[step] else 1.0,
                )
            )
        if episode:
            rows.append((LAST, FIRST, last, episode[-1], 0.0, 1.0))
        episode = []
    return rows


@properties.fewer(0.25)
@given(ENDS, st.booleans())
def test_frames_are_those_of_a_loop(ends, has_next):
    expected = expected_frames(ends, has_next)
    if not expected:
        return
    frames = datasets.load_arrays(arrays_of(ends, has_next))
    got = [
        (
            x.step_type,
            x.next_step_type,
            x.observation[0],
            x.action,
            x.reward,
            x.discount,
        )
        for x in frames.as_numpy_iterator()
    ]
    assert got == expected
    returns, total = [], 0.0
    for step_type, next_step_type, _, _, reward, _ in expected:
        total = 0.0 if step_type == FIRST else total
        total += reward
        returns += [total] * bool(next_step_type == LAST)
    np.testing.assert_allclose(datasets.episode_returns(frames), returns)
    windows = datasets.sequences(frames, 2)
    assert len([*windows]) == len(expected) - 1
    steps = [
        (int(x.action_step.action), float(x.next_time_step.observation[0]))
        for x in datasets.transitions(frames)
    ]
    assert steps == [
        (one[3], other[2])
        for one, other in itertools.pairwise(expected)
        if one[0] != LAST
    ]
