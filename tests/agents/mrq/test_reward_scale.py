"""The scale of MR.Q's values, against means worked by hand."""

import numpy as np
import tensorflow as tf

from tfrl.agents.mrq.reward_scale import RewardScale
from tfrl.trajectories import trajectory
from tfrl.trajectories.time_step import StepType

FIRST, MID, LAST = StepType.FIRST, StepType.MID, StepType.LAST


def frames(rewards, step_types, next_step_types, discounts=None):
    """Frames `[1, T]` of the given numbers `[T]`."""
    return trajectory.Trajectory(
        step_type=tf.constant([step_types], tf.int32),
        observation=(),
        action=(),
        policy_info=(),
        next_step_type=tf.constant([next_step_types], tf.int32),
        reward=tf.constant([rewards], tf.float32),
        discount=tf.constant([discounts or [1.0] * len(rewards)], tf.float32),
    )


def paid(*rewards):
    """Frames within an episode."""
    return frames(rewards, [MID] * len(rewards), [MID] * len(rewards))


def found(scale):
    return [float(scale.now), float(scale.before), float(scale.ends)]


def test_both_scales_are_1_without_frames():
    scale = RewardScale()
    assert found(scale) == [1, 1, 0]
    scale.advance()
    assert found(scale) == [1, 1, 0]


def test_values_of_critics_that_saw_no_reward_do_not_count():
    scale = RewardScale()
    for _ in range(2):
        scale.update(paid(0.0, 0.0))
        scale.advance()
        assert found(scale) == [1, 0, 0]
    scale.update(paid(0.03, -0.03))
    scale.advance()
    np.testing.assert_allclose(found(scale), [0.01, 0, 0], rtol=1e-6)
    scale.update(paid(0.03, 0.05))
    np.testing.assert_allclose(found(scale), [0.01, 0, 0], rtol=1e-6)
    scale.advance()
    np.testing.assert_allclose(found(scale), [0.0175, 0.01, 0], rtol=1e-6)
    scale.advance()
    np.testing.assert_allclose(found(scale), [0.0175, 0.0175, 0], rtol=1e-6)


def test_frames_between_episodes_do_not_count():
    scale = RewardScale()
    scale.update(
        frames([1.0, 100.0, 3.0], [MID, LAST, FIRST], [LAST, FIRST, MID], [1, 0, 1])
    )
    scale.advance()
    assert scale.now == 2


def test_a_termination_is_remembered():
    scale = RewardScale()
    scale.update(frames([1.0], [MID], [LAST], [0.0]))
    assert scale.ends == 1
    scale.update(paid(1.0))
    assert scale.ends == 1
