import numpy as np
import pytest
import tensorflow as tf

from tfrl.environments import trajectory_replay
from tfrl.policies import random_tf_policy, tf_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

NUMBER = tensor_spec.TensorSpec((), tf.float32)
CHOICE = tensor_spec.BoundedTensorSpec((), tf.int32, 0, 9)


class SummingPolicy(tf_policy.TFPolicy):
    """Acts with the sum of its observations; its info is reward and discount."""

    def __init__(self):
        super().__init__(
            ts.time_step_spec(NUMBER),
            NUMBER,
            policy_state_spec=NUMBER,
            info_spec={"reward": NUMBER, "discount": NUMBER},
            automatic_state_reset=False,
        )

    def _action(self, time_step, policy_state, seed):
        total = policy_state + time_step.observation
        info = {"reward": time_step.reward, "discount": time_step.discount}
        return policy_step.PolicyStep(total, total, info)

    def _variables(self):
        return []


def make_trajectory():
    """Two rows of three frames, `[B=2, T=3]`."""
    return trajectory.Trajectory(
        step_type=tf.constant([[0, 1, 1], [1, 2, 0]]),
        observation=tf.constant([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]),
        action=tf.zeros([2, 3], tf.int64),
        policy_info=(),
        next_step_type=tf.constant([[1, 1, 2], [2, 0, 1]]),
        reward=tf.constant([[4.0, 5.0, 6.0], [7.0, 0.0, 8.0]]),
        discount=tf.constant([[0.9, 0.8, 0.0], [0.0, 1.0, 0.7]]),
    )


def transposed(nest):
    return tf.nest.map_structure(tf.transpose, nest)


def run(time_major, policy_state=None, in_graph=False):
    replay = trajectory_replay.TrajectoryReplay(SummingPolicy(), time_major)
    call = tf.function(replay.run) if in_graph else replay.run
    frames = make_trajectory()
    if not time_major:
        return call(frames, policy_state)
    actions, infos, state = call(transposed(frames), policy_state)
    return transposed(actions), transposed(infos), state


@pytest.mark.parametrize(
    ("time_major", "in_graph"), [(False, False), (False, True), (True, False)]
)
def test_the_policy_sees_the_recorded_steps_in_turn(time_major, in_graph):
    actions, infos, state = run(time_major, in_graph=in_graph)
    assert actions.numpy().tolist() == [[1, 3, 6], [10, 30, 60]]
    assert state.numpy().tolist() == [6, 60]
    # A step has the reward and discount of the frame before; the first has 0 and 1.
    assert infos["reward"].numpy().tolist() == [[0, 4, 5], [0, 7, 0]]
    np.testing.assert_allclose(infos["discount"], [[1, 0.9, 0.8], [1, 0, 1]], rtol=1e-6)


def test_it_begins_with_the_state_that_is_given():
    actions, _, state = run(False, tf.constant([100.0, 0.0]))
    assert actions.numpy().tolist() == [[101, 103, 106], [10, 30, 60]]
    assert state.numpy().tolist() == [106, 60]


def test_shapes_that_only_the_graph_knows():
    replay = trajectory_replay.TrajectoryReplay(SummingPolicy())
    frames = make_trajectory()
    specs = tf.nest.map_structure(
        lambda t: tf.TensorSpec([None, None], t.dtype), frames
    )
    graph = tf.function(replay.run, input_signature=[specs])
    assert graph(frames)[0].numpy().tolist() == [[1, 3, 6], [10, 30, 60]]
    one = tf.nest.map_structure(lambda t: t[:1, :2], frames)
    assert graph(one)[0].numpy().tolist() == [[1, 3]]


def test_a_seed_decides_random_actions_and_steps_differ():
    policy = random_tf_policy.RandomTFPolicy(ts.time_step_spec(NUMBER), CHOICE)
    replay = trajectory_replay.TrajectoryReplay(policy)
    frames = tf.nest.map_structure(lambda t: tf.tile(t, [1, 10]), make_trajectory())
    one, two = (replay.run(frames, seed=s)[0].numpy() for s in (1, 1))
    other = replay.run(frames, seed=2)[0].numpy()
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()
    assert len(np.unique(one)) > 3


def test_wrong_arguments_are_named():
    with pytest.raises(
        TypeError, match="policy: got 3 of type int, expected a TFPolicy"
    ):
        trajectory_replay.TrajectoryReplay(3)
    replay = trajectory_replay.TrajectoryReplay(SummingPolicy())
    frame = tf.nest.map_structure(lambda t: t[:, 0], make_trajectory())
    with pytest.raises(
        ValueError, match=r"trajectory: got 1 outer dimensions, expec.*B"
    ):
        replay.run(frame)
    wrong = make_trajectory()._replace(observation=tf.zeros([2, 3], tf.int32))
    with pytest.raises(TypeError, match="int32"):
        replay.run(wrong)
