"""Items of adders as the experience that agents train on."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.acme.adders import episodes
from tfrl import networks
from tfrl.acme import types
from tfrl.acme.adders import reverb as adders
from tfrl.agents import DqnAgent
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

FIRST, MID, LAST = 0, 1, 2
GAMMA = 0.5
REWARDS = episodes.floats(1, 2, 3, 4, 5)


def observed(t):
    return np.array([t], np.float32)


def make_agent(n):
    """Returns an agent with Q(s) = [s, 2 s]."""
    network = networks.Sequential(
        [
            keras.layers.Dense(
                2,
                kernel_initializer=lambda shape, dtype: tf.constant([[1.0, 2.0]]),
            )
        ],
        input_spec=tf.TensorSpec([1], tf.float32),
    )
    agent = DqnAgent(
        ts.time_step_spec(tf.TensorSpec([1], tf.float32, name="observation")),
        BoundedTensorSpec([], tf.int32, 0, 1),
        q_network=network,
        optimizer=keras.optimizers.SGD(0.0),
        n_step_update=n,
        gamma=GAMMA,
        td_errors_loss_fn=tf.math.squared_difference,
    )
    agent.initialize()
    return agent


def stacked(kind, items):
    return kind(*map(np.stack, zip(*items, strict=True)))


def test_an_agents_target_of_a_stored_transition_is_the_n_step_target(client, drain):
    adder = adders.NStepTransitionAdder(client, n_step=3, discount=GAMMA)
    for is_truncated in (False, True):
        episodes.add_episode(
            adder,
            episodes.time_steps(REWARDS, observed, is_truncated=is_truncated),
            action=lambda t: np.int32(t % 2),  # 0 1 0 1 0
        )
    items = stacked(types.Transition, drain())

    experience = adders.to_experience(items)
    info = make_agent(n=1).loss(experience).extra

    # With y = R + g D 2 s' and Q(s, a) = s or 2 s. For example s_1 to s_4:
    # 2 + 3/2 + 4/4 + 8/8 - 2, and at the truncated end s_4 to s_5: 5 + 10/2 - 4.
    short = [1 + 2 / 2, 2 + 4 / 4, 2.75 + 6 / 8, 4.5 + 8 / 8 - 2]
    terminal = [6.25 - 2, 6.5 - 6, 5 - 4]
    truncated = [6.25 + 10 / 8 - 2, 6.5 + 10 / 4 - 6, 5 + 10 / 2 - 4]
    np.testing.assert_array_equal(info.td_error, short + terminal + short + truncated)


def test_stored_transitions_and_frames_of_a_buffer_give_the_same_targets(client, drain):
    adder = adders.NStepTransitionAdder(client, n_step=3, discount=GAMMA)
    episodes.add_episode(adder, episodes.time_steps(REWARDS, observed))
    items = stacked(types.Transition, drain())
    from_adder = adders.to_experience(items)

    # The items from s_1 on, by the windows that a buffer of frames would sample.
    step_types = np.array([MID, MID, MID, MID, LAST], np.int32)
    frames = trajectory.Trajectory(
        step_type=step_types,
        observation=np.arange(1, 6, dtype=np.float32)[:, None],
        action=np.arange(11, 16, dtype=np.int32),
        policy_info=(),
        next_step_type=np.array([MID, MID, MID, LAST, FIRST], np.int32),
        reward=np.array([2, 3, 4, 5, 0], np.float32),
        discount=np.array([1, 1, 1, 0, 1], np.float32),
    )
    windows = tf.nest.map_structure(lambda x: np.stack([x[0:4], x[1:5]]), frames)
    from_frames = trajectory.to_n_step_transition(windows, GAMMA)

    chosen = tf.nest.map_structure(lambda x: x[3:5], from_adder)
    # The frames also know that s_5 is the last observation, as the items do here.
    tf.nest.map_structure(np.testing.assert_array_equal, chosen, from_frames)


def test_extras_become_the_policys_info():
    items = types.Transition(
        observation=np.zeros([2, 1], np.float32),
        action=np.zeros([2], np.int32),
        reward=np.zeros([2], np.float32),
        discount=np.ones([2], np.float32),
        next_observation=np.zeros([2, 1], np.float32),
        extras={"core": np.arange(2)},
    )
    transition = adders.to_experience(items)
    np.testing.assert_array_equal(transition.action_step.info["core"], [0, 1])
    assert np.isfinite(make_agent(n=1).loss(transition).loss)


def sequences(client, drain, length, rewards, end, episode_count=1, **options):
    adder = adders.SequenceAdder(
        client, length, length, end_of_episode_behavior=adders.EndBehavior(end)
    )
    for _ in range(episode_count):
        episodes.add_episode(
            adder,
            episodes.time_steps(rewards, observed, **options),
            action=lambda t: np.int32(t % 2),
        )
    return [
        adders.Trajectory(*(column[np.newaxis] for column in item)) for item in drain()
    ]


ZERO_PAD, CONTINUE = "zero_pad_til_next_write", "continue_to_next_episode"


@pytest.mark.parametrize("is_truncated", [False, True])
def test_rows_after_the_last_observation_are_boundaries(client, drain, is_truncated):
    # Four rows of an episode, and three of padding. The last reward and action are 0,
    # so the step of a termination looks like the row of a last observation.
    (item,) = sequences(
        client,
        drain,
        7,
        episodes.floats(1, 2, 0),
        ZERO_PAD,
        first=5,
        is_truncated=is_truncated,
    )
    frames = adders.to_experience(item)
    expected = [[FIRST, MID, MID, LAST, LAST, LAST, LAST]]
    np.testing.assert_array_equal(frames.step_type, expected)
    np.testing.assert_array_equal(
        frames.next_step_type, [[MID, MID, LAST, LAST, LAST, LAST, LAST]]
    )
    np.testing.assert_array_equal(frames.discount[0, 2], float(is_truncated))
    valid = ~trajectory.to_transition(frames).time_step.is_last()
    np.testing.assert_array_equal(valid, [[True, True, True, False, False, False]])


@pytest.mark.parametrize("is_truncated", [False, True])
def test_a_sequence_that_continues_has_a_boundary_between_its_episodes(
    client, drain, is_truncated
):
    items = sequences(
        client,
        drain,
        3,
        episodes.floats(1, 0),
        CONTINUE,
        episode_count=2,
        first=5,
        is_truncated=is_truncated,
    )
    frames = [adders.to_experience(item) for item in items]
    step_types = [f.step_type.numpy()[0].tolist() for f in frames]
    assert step_types == [[FIRST, MID, LAST], [FIRST, MID, LAST]]

    # Rows 0 1 2 3 and 4, 0' 1' 2'.
    items = sequences(
        client,
        drain,
        4,
        episodes.floats(1, 2, 3, 0),
        CONTINUE,
        episode_count=2,
        first=5,
        is_truncated=is_truncated,
    )
    frames = adders.to_experience(items[1])
    np.testing.assert_array_equal(frames.step_type, [[LAST, FIRST, MID, MID]])
    np.testing.assert_array_equal(frames.next_step_type, [[FIRST, MID, MID, MID]])


def test_a_discount_of_zero_inside_an_episode_ends_nothing():
    # As when an Atari game takes a life: the episode goes on.
    item = adders.Trajectory(
        observation=np.array([[[1.0], [2.0], [3.0], [4.0]]], np.float32),
        action=np.zeros([1, 4], np.int32),
        reward=np.array([[0, 0, 1, 0]], np.float32),
        discount=np.array([[1, 0, 1, 1]], np.float32),
        start_of_episode=np.array([[True, False, False, False]]),
    )
    frames = adders.to_experience(item)
    np.testing.assert_array_equal(frames.step_type, [[FIRST, MID, MID, MID]])


@pytest.mark.parametrize("kind", [types.Transition, adders.Trajectory])
def test_rewards_and_discounts_of_double_precision_become_float32(kind):
    items = kind(*[np.ones([2, 3])] * 6)
    if kind is adders.Trajectory:
        items = items._replace(start_of_episode=np.zeros([2, 3], bool))
    experience = adders.to_experience(items)
    step = getattr(experience, "next_time_step", experience)
    assert (step.reward.dtype, step.discount.dtype) == (tf.float32, tf.float32)


def test_other_items_are_refused():
    with pytest.raises(TypeError, match="got dict, expected a Transition or a"):
        adders.to_experience({"observation": np.zeros([2, 3])})
