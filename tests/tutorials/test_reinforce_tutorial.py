"""What the REINFORCE tutorial does: a few iterations, an evaluation, a film."""

import imageio
import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.reinforce import reinforce_agent
from tfrl.drivers import py_driver
from tfrl.environments import suite_gym, tf_py_environment
from tfrl.networks import actor_distribution_network
from tfrl.policies import py_tf_eager_policy
from tfrl.replay_buffers import tf_uniform_replay_buffer
from tfrl.utils import common, nest_utils

_EPISODES_PER_ITERATION = 2


def _load():
    environment = suite_gym.load("CartPole-v0")
    return environment, tf_py_environment.TFPyEnvironment(environment)


def _make_agent():
    _, environment = _load()
    actor = actor_distribution_network.ActorDistributionNetwork(
        environment.observation_spec(),
        environment.action_spec(),
        fc_layer_params=(16,),
    )
    agent = reinforce_agent.ReinforceAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        actor_network=actor,
        optimizer=tf.keras.optimizers.Adam(learning_rate=0.01),
        normalize_returns=True,
        train_step_counter=tf.Variable(0),
    )
    agent.initialize()
    return agent


def _make_buffer(agent):
    return tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=1, max_length=500
    )


def _collect(agent, buffer, environment):
    """Plays with an unbatched driver; the buffer stores batches of one."""
    driver = py_driver.PyDriver(
        environment,
        py_tf_eager_policy.PyTFEagerPolicy(agent.collect_policy, use_tf_function=True),
        [lambda frame: buffer.add_batch(nest_utils.batch_nested_array(frame))],
        max_episodes=_EPISODES_PER_ITERATION,
    )
    return driver.run(environment.reset())


def _mean_return(environment, policy, num_episodes):
    """The mean return, and the mean number of steps."""
    earned, steps = tf.zeros([1]), 0
    for _ in range(num_episodes):
        now = environment.reset()
        while not now.is_last():
            now = environment.step(policy.action(now).action)
            earned += now.reward
            steps += 1
    return (earned / num_episodes).numpy()[0], steps / num_episodes


def test_driver_fills_the_buffer_with_whole_episodes():
    agent = _make_agent()
    buffer = _make_buffer(agent)
    environment, _ = _load()
    final, _ = _collect(agent, buffer, environment)
    assert final.is_first()
    frames = buffer.gather_all()
    length = int(buffer.num_frames())
    assert frames.observation.shape == (1, length, 4)
    assert frames.action.shape == frames.reward.shape == (1, length)
    assert frames.action.dtype == tf.int64
    # Each episode ends with the frame of its reset, which has no reward.
    ends, resets = frames.is_last().numpy()[0], frames.is_boundary().numpy()[0]
    assert ends.sum() == resets.sum() == _EPISODES_PER_ITERATION
    assert np.flatnonzero(resets).tolist() == (np.flatnonzero(ends) + 1).tolist()
    assert resets[-1]
    np.testing.assert_array_equal(frames.reward[0], 1.0 - resets)


def test_whole_buffer_is_one_element_of_a_deterministic_dataset():
    agent = _make_agent()
    buffer = _make_buffer(agent)
    _collect(agent, buffer, _load()[0])
    dataset = buffer.as_dataset(
        sample_batch_size=1,
        num_steps=int(buffer.num_frames()),
        single_deterministic_pass=True,
    )
    [(frames, _)] = list(dataset)
    tf.nest.map_structure(np.testing.assert_array_equal, frames, buffer.gather_all())


def test_iterations_of_collecting_training_and_clearing():
    agent = _make_agent()
    buffer = _make_buffer(agent)
    environment, _ = _load()
    agent.train = common.function(agent.train)
    agent.train_step_counter.assign(0)
    for iteration in range(3):
        before = [v.numpy() for v in agent.policy.variables()]
        _collect(agent, buffer, environment)
        loss_info = agent.train(experience=buffer.gather_all())
        buffer.clear()
        assert int(buffer.num_frames()) == 0
        assert agent.train_step_counter.numpy() == iteration + 1
        assert agent.train_step_counter.dtype == tf.int32
        assert loss_info.loss.shape == ()
        assert np.isfinite(loss_info.loss)
        after = [v.numpy() for v in agent.policy.variables()]
        assert all((x != y).any() for x, y in zip(before, after, strict=True))
    # The second length of the experience makes it any length.
    assert agent.train.experimental_get_tracing_count() <= 2


def test_unfinished_episode_is_refused():
    agent = _make_agent()
    buffer = _make_buffer(agent)
    environment, _ = _load()
    driver = py_driver.PyDriver(
        environment,
        py_tf_eager_policy.PyTFEagerPolicy(agent.collect_policy),
        [lambda frame: buffer.add_batch(nest_utils.batch_nested_array(frame))],
        max_steps=3,
    )
    driver.run(environment.reset())
    with pytest.raises(tf.errors.InvalidArgumentError, match="whole episodes"):
        agent.train(experience=buffer.gather_all())


def test_mean_return_of_a_policy_is_a_number_from_numpy():
    _, environment = _load()
    agent = _make_agent()
    for policy in (agent.policy, agent.collect_policy):
        mean_return, mean_length = _mean_return(environment, policy, num_episodes=2)
        assert isinstance(mean_return, np.float32)
        assert 5.0 < mean_return == mean_length <= 200.0


@pytest.mark.slow
def test_frames_of_an_episode_make_a_film(tmp_path):
    py_environment, environment = _load()
    policy = _make_agent().policy
    path = tmp_path / "cart_pole.mp4"
    now = environment.reset()
    first = py_environment.render()
    assert first.shape == (400, 600, 3)
    assert first.dtype == np.uint8
    num_frames = 1
    with imageio.get_writer(path, fps=60) as film:
        film.append_data(first)
        while not now.is_last():
            now = environment.step(policy.action(now).action)
            film.append_data(py_environment.render())
            num_frames += 1
    with imageio.get_reader(path) as reader:
        assert reader.count_frames() == num_frames
        assert np.ptp(reader.get_data(0)) > 100
