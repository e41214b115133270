"""What a loop derives from the frames of a rollout."""

import tensorflow as tf

from tfrl.train.loops import rollouts
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

FIRST, MID, LAST = 0, 1, 2


def test_next_step_types_are_those_of_the_following_frames():
    frames = trajectory.Trajectory(
        step_type=tf.constant([[FIRST, MID], [MID, LAST], [LAST, FIRST]]),
        observation=tf.zeros([3, 2]),
        action=tf.zeros([3, 2]),
        policy_info=(),
        next_step_type=(),
        reward=tf.zeros([3, 2]),
        discount=tf.ones([3, 2]),
    )
    reached = ts.restart(tf.zeros([2]), batch_size=2)
    reached = reached._replace(step_type=tf.constant([FIRST, MID]))
    given = rollouts.with_next_step_types(frames, reached)
    assert given.next_step_type.numpy().tolist() == [
        [MID, LAST],
        [LAST, FIRST],
        [FIRST, MID],
    ]
    assert given.step_type is frames.step_type
