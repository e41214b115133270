"""From trajectories to transitions, where episodes end and where sequences are cut.

The frames of most tests are worked by hand: observation 10 + t, action 20 + t, reward
2^t, so that every sum tells which rewards are in it; gamma is 0.5.
"""

import typing

import numpy as np
import pytest
import tensorflow as tf

from tfrl import losses
from tfrl.trajectories import policy_step, trajectory, transitions
from tfrl.trajectories import time_step as ts

FIRST, MID, LAST = 0, 1, 2
GAMMA = 0.5


def sequence(step_type, next_step_type, discount=None):
    """One row, `[1, T]`."""
    num_frames = len(step_type)
    steps = np.arange(num_frames)
    return trajectory.Trajectory(
        step_type=np.array([step_type], np.int32),
        observation={"x": (10 + steps)[np.newaxis, :, np.newaxis].astype(np.uint8)},
        action=(20 + steps)[np.newaxis],
        policy_info=(),
        next_step_type=np.array([next_step_type], np.int32),
        reward=(2.0**steps)[np.newaxis].astype(np.float32),
        discount=np.array([discount or [1] * num_frames], np.float32),
    )


def assert_n_step(transition, reward, discount, observation, step_type):
    """`transition` is of frame 0 and ends as given."""
    step, action, end = transition
    assert not step.is_last()[0]
    assert step.observation["x"].numpy().tolist() == [[10]]
    assert action.action.numpy().tolist() == [20]
    np.testing.assert_allclose(end.reward, [reward], rtol=1e-6)
    np.testing.assert_allclose(end.discount, [discount], rtol=1e-6)
    assert end.observation["x"].numpy().tolist() == [[observation]]
    assert end.step_type.numpy().tolist() == [step_type]


def assert_masked(transition):
    """LAST marks `transition`, and nothing of it is NaN where a loss looks."""
    assert transition.time_step.is_last()[0]
    np.testing.assert_array_equal(transition.next_time_step.reward, [0])
    np.testing.assert_array_equal(transition.next_time_step.discount, [0])
    assert transition.next_time_step.observation["x"].numpy().tolist() == [[10]]


# to_transition


def test_each_frame_is_paired_with_the_next_observation():
    step, action, end = trajectory.to_transition(
        sequence([FIRST, MID, LAST], [MID, LAST, FIRST], [1, 0, 1])
    )
    np.testing.assert_array_equal(step.step_type, [[FIRST, MID]])
    np.testing.assert_array_equal(step.observation["x"][..., 0], [[10, 11]])
    np.testing.assert_array_equal(step.reward, [[0, 0]])
    np.testing.assert_array_equal(step.discount, [[0, 0]])
    np.testing.assert_array_equal(action.action, [[20, 21]])
    assert action.state == ()
    np.testing.assert_array_equal(end.step_type, [[MID, LAST]])
    np.testing.assert_array_equal(end.observation["x"][..., 0], [[11, 12]])
    np.testing.assert_array_equal(end.reward, [[1, 2]])
    np.testing.assert_array_equal(end.discount, [[1, 0]])


def test_boundaries_and_cuts_are_marked_last():
    # Frame 1 is a boundary; frame 3 (MID -> MID) is followed by a FIRST: a cut.
    step, _, _ = trajectory.to_transition(
        sequence([MID, LAST, FIRST, MID, FIRST], [LAST, FIRST, MID, MID, MID])
    )
    np.testing.assert_array_equal(step.is_last(), [[False, True, False, True]])


def test_two_adjacent_batches_make_transitions_without_time():
    frames = sequence([FIRST, MID], [MID, MID])
    now = tf.nest.map_structure(lambda x: x[:, 0], frames)
    later = tf.nest.map_structure(lambda x: x[:, 1], frames)
    step, _, end = trajectory.to_transition(now, later)
    assert step.observation["x"].numpy().tolist() == [[10]]
    assert end.observation["x"].numpy().tolist() == [[11]]


@pytest.mark.parametrize("shape", [(), (2, 3, 4)])
def test_discount_of_another_rank_is_an_error(shape):
    frames = trajectory.mid((), (), (), np.ones(shape), np.ones(shape))
    with pytest.raises(ValueError, match=r"trajectory\.discount: got rank"):
        trajectory.to_transition(frames)


def test_squeezed_transitions_have_no_time_dimension():
    frames = sequence([FIRST, MID], [MID, MID])
    step, action, _ = trajectory.experience_to_transitions(frames, True)
    assert action.action.shape == (1,)
    assert step.observation["x"].shape == (1, 1)
    unsqueezed = trajectory.experience_to_transitions(frames, False)
    assert unsqueezed.action_step.action.shape == (1, 1)


def test_transition_spec_has_no_policy_state():
    spec = ts.time_step_spec(tf.TensorSpec([3]))
    trajectory_spec = trajectory.Trajectory(
        spec.step_type,
        spec.observation,
        tf.TensorSpec([], tf.int32),
        (),
        spec.step_type,
        spec.reward,
        spec.discount,
    )
    transition = trajectory.to_transition_spec(trajectory_spec)
    assert transition.time_step == spec
    assert transition.next_time_step == spec
    assert transition.action_step == (tf.TensorSpec([], tf.int32), (), ())


# to_n_step_transition


def test_plain_window_runs_n_steps():
    transition = trajectory.to_n_step_transition(
        sequence([MID] * 4, [MID] * 4, [1, 0.5, 1, 1]), GAMMA
    )
    # 1 + g*1*2 + g^2*(1*.5)*4; the discount is g^2 * .5: one gamma short.
    assert_n_step(transition, 1 + 1 + 0.5, 0.125, 13, MID)


def test_one_step_window_is_the_transition():
    transition = trajectory.to_n_step_transition(
        sequence([FIRST, MID], [MID, MID], [0.9, 1]), GAMMA
    )
    assert_n_step(transition, 1, 0.9, 11, MID)


def test_window_ends_at_a_termination():
    transition = trajectory.to_n_step_transition(
        sequence([MID, MID, LAST, FIRST], [MID, LAST, FIRST, MID], [1, 0, 1, 1]), GAMMA
    )
    # Not the boundary's reward 4, nor the next episode's observation 13.
    assert_n_step(transition, 1 + 1, 0, 12, LAST)


def test_window_that_ends_at_a_truncation_bootstraps_its_last_observation():
    transition = trajectory.to_n_step_transition(
        sequence([MID, MID, LAST, FIRST], [MID, LAST, FIRST, MID]), GAMMA
    )
    # Two steps: the loss multiplies V(12) by gamma * 0.5 = gamma^2.
    assert_n_step(transition, 1 + 1, 0.5, 12, LAST)


def test_episode_that_ends_with_the_window_is_whole():
    transition = trajectory.to_n_step_transition(
        sequence([FIRST, MID, LAST], [MID, LAST, FIRST], [1, 0, 1]), GAMMA
    )
    assert_n_step(transition, 1 + 1, 0, 12, LAST)


def test_window_ends_before_a_cut():
    # Frame 1 says MID follows, but frame 2 is a FIRST: observation 12 is of another
    # episode, so that the window is 0 -> 1 alone.
    transition = trajectory.to_n_step_transition(
        sequence([FIRST, MID, FIRST, MID], [MID, MID, MID, MID]), GAMMA
    )
    assert_n_step(transition, 1, 1, 11, MID)


def test_window_that_is_cut_at_once_is_masked():
    assert_masked(
        trajectory.to_n_step_transition(
            sequence([MID, FIRST, MID], [MID, MID, MID]), GAMMA
        )
    )


def test_window_that_starts_at_a_boundary_is_masked():
    assert_masked(
        trajectory.to_n_step_transition(
            sequence([LAST, FIRST, MID], [FIRST, MID, MID]), GAMMA
        )
    )


def test_rows_of_a_batch_end_each_for_itself():
    whole = sequence([MID] * 3, [MID] * 3)
    short = sequence([MID, LAST, FIRST], [LAST, FIRST, MID])
    batch = tf.nest.map_structure(
        lambda *rows: np.concatenate(rows), whole, short, whole
    )
    end = trajectory.to_n_step_transition(batch, GAMMA).next_time_step
    np.testing.assert_array_equal(end.observation["x"][:, 0], [12, 11, 12])
    np.testing.assert_allclose(end.reward, [2, 1, 2], rtol=1e-6)
    np.testing.assert_allclose(end.discount, [0.5, 1, 0.5], rtol=1e-6)


def test_garbage_after_the_episode_does_not_leak():
    frames = sequence([MID, LAST, FIRST], [LAST, FIRST, MID], [0, 1, 1])
    frames.reward[0, 1:] = np.nan
    assert_n_step(trajectory.to_n_step_transition(frames, GAMMA), 1, 0, 11, LAST)


@pytest.mark.parametrize("num_frames", [2, 3])
def test_reward_and_discount_of_the_first_time_step_are_zeros(num_frames):
    frames = sequence([MID] * num_frames, [MID] * num_frames)
    for step in (
        trajectory.to_transition(frames).time_step,
        trajectory.to_n_step_transition(frames, GAMMA).time_step,
    ):
        np.testing.assert_array_equal(step.reward, np.zeros_like(step.reward))
        np.testing.assert_array_equal(step.discount, np.zeros_like(step.discount))


def test_n_step_equals_a_loop_over_random_episodes():
    rng = np.random.default_rng(0)
    rows, frames = 64, 6
    # Step types follow each other but for a few cuts.
    step_type = rng.choice([FIRST, MID, LAST], p=[0.1, 0.7, 0.2], size=(rows, frames))
    next_step_type = np.where(
        rng.random((rows, frames)) < 0.9, np.roll(step_type, -1, axis=1), MID
    )
    reward = rng.normal(size=(rows, frames)).astype(np.float32)
    discount = rng.random((rows, frames)).astype(np.float32)
    observation = rng.normal(size=(rows, frames, 2)).astype(np.float32)
    transition = trajectory.to_n_step_transition(
        trajectory.Trajectory(
            step_type, observation, reward, (), next_step_type, reward, discount
        ),
        0.9,
    )
    for b in range(rows):
        total, worth, k = 0.0, 1.0, 0
        while (
            k < frames - 1
            and step_type[b, k] != LAST
            and next_step_type[b, k] == step_type[b, k + 1]
        ):
            total += worth * reward[b, k]
            worth *= 0.9 * discount[b, k]
            k += 1
        end = transition.next_time_step
        assert bool(transition.time_step.is_last()[b]) == (k == 0)
        np.testing.assert_allclose(end.reward[b], total, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(
            end.discount[b], worth / 0.9 if k else 0.0, rtol=1e-5, atol=1e-6
        )
        np.testing.assert_array_equal(end.observation[b], observation[b, k])


@pytest.mark.parametrize("num_steps", [1, 2, 4])
def test_with_a_value_it_is_the_n_step_return_of_a_sequence(num_steps):
    rng = np.random.default_rng(1)
    reward, discount, value = rng.random([3, 8, num_steps + 1]).astype(np.float32)
    mid = np.full([8, num_steps + 1], MID, np.int32)
    frames = trajectory.Trajectory(mid, value, (), (), mid, reward, discount)
    end = trajectory.to_n_step_transition(frames, 0.9).next_time_step
    returns = losses.n_step_returns(
        reward[:, :-1].T, 0.9 * discount[:, :-1].T, value[:, 1:].T, num_steps
    )
    np.testing.assert_allclose(
        end.reward + 0.9 * end.discount * end.observation, returns[0], rtol=1e-5
    )


def test_sparse_observations_end_where_dense_ones_do():
    frames = sequence([MID, LAST, FIRST], [LAST, FIRST, MID])
    frames = frames.replace(
        observation=tf.sparse.from_dense([[[1, 0], [0, 2], [3, 4]]])
    )
    transition = trajectory.to_n_step_transition(frames, GAMMA)
    end = tf.sparse.to_dense(transition.next_time_step.observation)
    np.testing.assert_array_equal(end, [[0, 2]])


def test_unknown_time_dimension_traces_once():
    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def returns(reward):
        step_type = tf.ones_like(reward, tf.int32)
        frames = trajectory.Trajectory(
            step_type, reward, reward, (), step_type, reward, tf.ones_like(reward)
        )
        return trajectory.to_n_step_transition(frames, GAMMA).next_time_step.reward

    np.testing.assert_allclose(returns(tf.ones([1, 3])), [1.5], rtol=1e-6)
    np.testing.assert_allclose(returns(tf.ones([2, 4])), [1.75, 1.75], rtol=1e-6)
    assert returns.experimental_get_tracing_count() == 1


def test_too_short_a_window_is_an_error():
    with pytest.raises(ValueError, match=r"got 1 frames .* expected T >= 2"):
        trajectory.to_n_step_transition(sequence([MID], [MID]), GAMMA)


@pytest.mark.parametrize(
    ("reward", "shape"),
    [({"a": np.zeros([1, 2])}, r"\{'a': \(1, 2\)\}"), (np.zeros([1, 2, 3]), ".*3")],
)
def test_more_than_one_reward_is_an_error(reward, shape):
    frames = sequence([MID] * 2, [MID] * 2).replace(reward=reward)
    with pytest.raises(ValueError, match=f"reward: got shape {shape}.*weighted sum"):
        trajectory.to_n_step_transition(frames, GAMMA)


def test_transitions_of_frames_keep_vector_and_nested_rewards():
    frames = sequence([MID] * 2, [MID] * 2)
    rewards = {"a": np.ones([1, 2, 3], np.float32), "b": frames.reward}
    transition = trajectory.to_transition(frames.replace(reward=rewards))
    assert transition.next_time_step.reward["a"].shape == (1, 1, 3)
    np.testing.assert_array_equal(transition.time_step.reward["a"], np.zeros([1, 1, 3]))
    np.testing.assert_array_equal(
        transition.next_time_step.reward["b"], frames.reward[:, :1]
    )


def test_fields_have_the_types_that_their_names_say():
    assert typing.get_type_hints(transitions.Transition) == {
        "time_step": ts.TimeStep,
        "action_step": policy_step.PolicyStep,
        "next_time_step": ts.TimeStep,
    }


# --- Without step types.


def test_without_step_types_all_frames_belong_together():
    frames = trajectory.Trajectory(
        step_type=(),
        observation=tf.constant([[1.0, 2.0, 3.0]]),
        action=tf.constant([[0, 1, 0]]),
        policy_info=(),
        next_step_type=(),
        reward=tf.constant([[1.0, 10.0, 100.0]]),
        discount=tf.constant([[0.5, 0.5, 0.0]]),
    )
    single = trajectory.to_transition(frames)
    assert single.time_step.step_type == single.next_time_step.step_type == ()
    np.testing.assert_array_equal(single.next_time_step.observation, [[2.0, 3.0]])

    several = trajectory.to_n_step_transition(frames, gamma=0.5)
    assert several.time_step.step_type == several.next_time_step.step_type == ()
    # 1 + gamma * 0.5 * 10, and gamma * 0.5 * 0.5.
    np.testing.assert_array_equal(several.next_time_step.reward, [3.5])
    np.testing.assert_array_equal(several.next_time_step.discount, [0.125])
    np.testing.assert_array_equal(several.next_time_step.observation, [3.0])
