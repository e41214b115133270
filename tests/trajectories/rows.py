"""Rows of frames that episodes and cuts divide in any way."""

import numpy as np
from hypothesis import strategies as st

from tests import properties
from tfrl.trajectories import trajectory

FIRST, MID, LAST = 0, 1, 2
BATCH, LENGTH = 2, 5
STEP_TYPES = st.lists(st.integers(0, 2), min_size=LENGTH, max_size=LENGTH)
DISCOUNTS = st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=LENGTH, max_size=LENGTH)


@st.composite
def rows(draw):
    """Draws frames of any step types, each of which often follows the one before."""
    step_types = draw(STEP_TYPES)
    following = draw(STEP_TYPES)
    follows = draw(properties.flags(LENGTH))
    for i in range(LENGTH - 1):
        if follows[i]:
            following[i] = step_types[i + 1]
    return step_types, following, draw(properties.floats(LENGTH)), draw(DISCOUNTS)


ROWS = st.lists(rows(), min_size=BATCH, max_size=BATCH)


def frames_of(drawn):
    step_type, following, reward, discount = map(np.array, zip(*drawn, strict=True))
    numbers = np.arange(BATCH * LENGTH).reshape(BATCH, LENGTH)
    return trajectory.Trajectory(
        np.int32(step_type),
        numbers,
        10 * numbers,
        (),
        np.int32(following),
        np.float32(reward),
        np.float32(discount),
    )


def belong(row, t):
    """Whether frame `t` is a step whose next observation is in frame `t + 1`."""
    return row[0][t] != LAST and row[1][t] == row[0][t + 1]
