"""What the replay buffers tutorial does, with a spec and an agent of our own."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.drivers import dynamic_step_driver
from tfrl.environments import suite_gym, tf_py_environment
from tfrl.networks import q_network
from tfrl.replay_buffers import (
    py_uniform_replay_buffer,
    replay_buffer,
    tf_uniform_replay_buffer,
)
from tfrl.specs import array_spec, tensor_spec

_SPEC = (
    tf.TensorSpec([2], tf.float32, "torque"),
    (
        tf.TensorSpec([6], tf.float32, "joints"),
        tf.TensorSpec([4, 3], tf.float32, "map"),
    ),
)
_NUM_ROBOTS = 8


def _make_buffer(num_adds):
    """A buffer of items whose leaves are 1, 2 and 3 everywhere."""
    buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        _SPEC, batch_size=_NUM_ROBOTS, max_length=50
    )
    flat = [
        tf.fill([_NUM_ROBOTS, *spec.shape], float(i + 1))
        for i, spec in enumerate(tf.nest.flatten(_SPEC))
    ]
    for _ in range(num_adds):
        buffer.add_batch(tf.nest.pack_sequence_as(_SPEC, flat))
    return buffer


def _shapes(items):
    return tf.nest.map_structure(lambda x: tuple(x.shape), items)


def _check_values(items):
    for i, leaf in enumerate(tf.nest.flatten(items)):
        assert leaf.dtype == tf.float32
        np.testing.assert_array_equal(leaf, np.full(leaf.shape, i + 1.0))


# Writing and reading.


def test_capacity_is_that_of_all_members_of_the_batch():
    buffer = _make_buffer(num_adds=1)
    assert buffer.capacity == _NUM_ROBOTS * 50
    assert buffer.data_spec == _SPEC
    assert int(buffer.num_frames()) == _NUM_ROBOTS


def test_get_next_gives_a_batch_of_windows():
    items, info = _make_buffer(num_adds=6).get_next(sample_batch_size=10, num_steps=1)
    assert _shapes(items) == ((10, 1, 2), ((10, 1, 6), (10, 1, 4, 3)))
    _check_values(items)
    assert isinstance(info, replay_buffer.BufferInfo)
    assert info.ids.dtype == tf.int64


def test_dataset_gives_windows_without_end():
    dataset = _make_buffer(num_adds=6).as_dataset(sample_batch_size=4, num_steps=2)
    iterator = iter(dataset)
    for _ in range(3):
        items, _ = next(iterator)
        assert _shapes(items) == ((4, 2, 2), ((4, 2, 6), (4, 2, 4, 3)))
        _check_values(items)


def test_gather_all_gives_every_frame_of_every_member():
    items = _make_buffer(num_adds=6).gather_all()
    assert _shapes(items) == ((8, 6, 2), ((8, 6, 6), (8, 6, 4, 3)))
    _check_values(items)


def test_items_that_do_not_fit_the_spec_are_refused():
    buffer = _make_buffer(num_adds=0)
    one_robot = tf.nest.map_structure(lambda s: tf.zeros([1, *s.shape]), _SPEC)
    with pytest.raises(ValueError, match=r"\(1, 2\).*\(8, 2\)"):
        buffer.add_batch(one_robot)


def test_buffer_of_arrays_takes_the_specs_as_array_specs():
    spec = tensor_spec.to_nest_array_spec(_SPEC)
    buffer = py_uniform_replay_buffer.PyUniformReplayBuffer(
        capacity=50 * _NUM_ROBOTS, data_spec=spec
    )
    assert buffer.capacity == 50 * _NUM_ROBOTS
    assert buffer.size == 0
    joints = buffer.data_spec[1][0]
    assert isinstance(joints, array_spec.ArraySpec)
    assert (joints.shape, joints.dtype, joints.name) == ((6,), np.float32, "joints")


# In training.


@pytest.fixture(scope="module")
def collected():
    """A DQN agent with a v1 optimizer, and a buffer that a driver has filled."""
    environment = tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v0"))
    agent = dqn_agent.DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=q_network.QNetwork(
            environment.time_step_spec().observation,
            environment.action_spec(),
            fc_layer_params=(24,),
        ),
        optimizer=tf.compat.v1.train.AdamOptimizer(0.01),
    )
    buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=environment.batch_size, max_length=200
    )
    final = dynamic_step_driver.DynamicStepDriver(
        environment,
        agent.collect_policy,
        observers=[buffer.add_batch],
        num_steps=10,
    ).run()
    return agent, buffer, final


def test_driver_run_adds_its_steps_to_the_buffer(collected):
    agent, buffer, (time_step, policy_state) = collected
    frames = buffer.gather_all()
    tf.nest.assert_same_structure(frames, agent.collect_data_spec)
    boundaries = int(tf.reduce_sum(tf.cast(frames.is_boundary(), tf.int32)))
    assert int(buffer.num_frames()) == 10 + boundaries
    assert int(frames.step_type[0, 0]) == 0
    assert frames.action.dtype == tf.int64
    assert time_step.observation.shape == (1, 4)
    assert int(time_step.step_type[0]) == int(frames.next_step_type[0, -1])
    assert policy_state == ()


def test_agent_trains_on_the_buffer_as_a_dataset(collected):
    agent, buffer, _ = collected
    before = [v.numpy() for v in agent.policy.variables()]
    iterator = iter(buffer.as_dataset(sample_batch_size=4, num_steps=2))
    for _ in range(10):
        experience, _ = next(iterator)
        assert experience.observation.shape == (4, 2, 4)
        assert experience.reward.shape == (4, 2)
        loss_info = agent.train(experience=experience)
        assert loss_info.loss.shape == ()
        assert loss_info.loss.dtype == tf.float32
        assert np.isfinite(loss_info.loss)
    assert int(agent.train_step_counter) == 10
    after = [v.numpy() for v in agent.policy.variables()]
    assert all((x != y).any() for x, y in zip(before, after, strict=True))


def test_agent_refuses_windows_of_another_length(collected):
    agent, buffer, _ = collected
    experience, _ = next(iter(buffer.as_dataset(sample_batch_size=4, num_steps=3)))
    with pytest.raises(
        ValueError, match=r"T = 2 .*got shape \(4, 3\); sample with num_steps=2"
    ):
        agent.train(experience=experience)
