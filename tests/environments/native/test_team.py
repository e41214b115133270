import numpy as np
import pytest
import tensorflow as tf

import tfrl
from tfrl.environments import native
from tfrl.environments.native import team
from tfrl.specs import tensor_spec

LENGTH = 3


def meeting(mask=False):
    """Two agents on a line, who are paid their own position; the team ends at 3."""

    def initial(random):
        return tf.concat([random * 2, tf.zeros_like(random[:, :2])], 1)

    def step(state, action, random):
        del random
        places = state[:, :2] + tf.cast(action, tf.float32) - 1
        steps = state[:, 2:3] + 1
        after = tf.concat([places, steps, steps], 1)
        return native.Outcome(after, tf.reduce_sum(places, 1), steps[:, 0] >= LENGTH)

    def observe(state):
        places = state[:, :2]
        seen = tf.stack([places, places[:, ::-1]], 2)
        masks = {"action_mask": tf.fill([state.shape[0], 2, 3], True)} if mask else {}
        return {"observation": seen, team.REWARDS: places, **masks}

    masks = {"action_mask": tf.TensorSpec([2, 3], tf.bool)} if mask else {}
    return native.Dynamics(
        initial=initial,
        step=step,
        observe=observe,
        observation_spec={
            "observation": tf.TensorSpec([2, 2], tf.float32),
            team.REWARDS: tf.TensorSpec([2], tf.float32),
            **masks,
        },
        action_spec=tensor_spec.BoundedTensorSpec([2], tf.int32, [0, 0], [2, 2]),
        num_initial_randoms=2,
    )


def test_agents_are_members_with_their_own_observations_and_rewards():
    dynamics = team.of_team(meeting())
    assert dynamics.members == 2
    assert dynamics.action_spec.shape == []
    assert dynamics.action_spec.maximum == 2
    random = tf.constant([[0.5, 1.0], [9, 9], [2.0, 3.0], [9, 9]])
    state = dynamics.initial(random)  # Of the first agent of each team.
    assert state[:, 0].numpy().tolist() == [1, 1, 4, 4]
    seen = dynamics.observation(state)
    assert seen.numpy().tolist() == [[1, 2], [2, 1], [4, 6], [6, 4]]
    after = dynamics.step(state, tf.constant([0, 2, 1, 2]), tf.zeros([4, 0]))
    assert after.reward.numpy().tolist() == [0, 3, 4, 7]
    assert dynamics.observation(after.state).numpy().tolist() == [
        *([0, 3], [3, 0], [4, 7], [7, 4])
    ]


def test_episodes_end_for_all_agents_and_begin_together():
    environment = native.NativeEnvironment(team.of_team(meeting()), 6, seed=0)
    first = environment.reset()
    places = first.observation.numpy()
    np.testing.assert_array_equal(places[::2], places[1::2, ::-1])
    types = [environment.step(tf.ones([6], tf.int32)).step_type for _ in range(5)]
    assert [set(x.numpy()) for x in types] == [{1}, {1}, {2}, {0}, {1}]
    assert len({float(x) for x in environment.current_time_step().observation[::2, 0]})


def test_parts_that_agents_see_stay_a_dict():
    dynamics = team.of_team(meeting(mask=True))
    assert set(dynamics.observation_spec) == {"observation", "action_mask"}
    assert dynamics.observation_spec["action_mask"].shape == [3]
    environment = native.NativeEnvironment(dynamics, 4)
    assert environment.reset().observation["action_mask"].shape == [4, 3]
    assert team.is_team(meeting())
    assert not team.is_team(dynamics)


def test_a_batch_holds_whole_teams():
    dynamics = team.of_team(meeting())
    with pytest.raises(ValueError, match="batch_size: got 3, expected a multiple of"):
        native.NativeEnvironment(dynamics, 3)
    a2c = tfrl.A2C(dynamics, num_envs=5, num_iterations=1, seed=0)
    assert a2c.environment.batch_size == 6


@pytest.mark.slow
def test_one_policy_learns_for_all_agents():
    a2c = tfrl.A2C(
        team.of_team(meeting()),
        num_envs=32,
        collect_steps_per_iteration=6,
        num_iterations=60,
        learning_rate=1e-2,
        fc_layer_params=(16,),
        seed=0,
    )
    a2c.learn(progress=False)
    for seen in ([0.0, 5.0], [3.0, 0.0]):
        assert a2c.predict(np.float32(seen))[0] == 2  # To the right is paid.
