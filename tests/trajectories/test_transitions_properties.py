"""Transitions of rows that episodes and cuts divide, against loops."""

import math

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests.trajectories.rows import LAST, LENGTH, ROWS, belong, frames_of
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory


@given(ROWS)
def test_a_transition_is_valid_unless_its_frames_do_not_belong_together(drawn):
    frames = frames_of(drawn)
    transition = trajectory.to_transition(frames)
    assert transition.time_step.is_last().numpy().tolist() == [
        [not belong(row, t) for t in range(LENGTH - 1)] for row in drawn
    ]
    following = transition.next_time_step
    np.testing.assert_array_equal(following.observation, frames.observation[:, 1:])
    np.testing.assert_array_equal(following.reward, frames.reward[:, :-1])
    np.testing.assert_array_equal(following.discount, frames.discount[:, :-1])
    np.testing.assert_array_equal(following.step_type, frames.next_step_type[:, :-1])
    np.testing.assert_array_equal(transition.action_step.action, frames.action[:, :-1])


@given(ROWS, st.integers(1, LENGTH - 1), st.sampled_from([0.5, 1.0]))
def test_n_step_transitions_are_sums_up_to_an_end_or_a_cut(drawn, n, gamma):
    frames = tf.nest.map_structure(lambda x: x[:, : n + 1], frames_of(drawn))
    transition = trajectory.to_n_step_transition(frames, gamma)
    for b, row in enumerate(drawn):
        steps = 0
        while steps < n and belong(row, steps):
            steps += 1
        got = tf.nest.map_structure(lambda x, b=b: x[b].numpy(), transition)
        assert (got.time_step.step_type == ts.StepType.LAST) == (
            steps == 0 or row[0][0] == LAST
        )
        if not steps:
            assert got.next_time_step.reward == got.next_time_step.discount == 0
            continue
        _, _, reward, discount = row
        total = sum(
            float(reward[i]) * gamma**i * math.prod(discount[:i]) for i in range(steps)
        )
        np.testing.assert_allclose(got.next_time_step.reward, total, 1e-4, 1e-3)
        assert got.next_time_step.discount == gamma ** (steps - 1) * math.prod(
            discount[:steps]
        )
        assert got.next_time_step.observation == b * LENGTH + steps
        assert got.next_time_step.step_type == row[0][steps]
