"""Loops move the statistics of an agent's normalizers with each frame they collect."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents, networks, testing, train
from tfrl.environments import native, tf_py_environment
from tfrl.eval import evaluate
from tfrl.replay_buffers import TFUniformReplayBuffer
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import StreamingTensorNormalizer

ENVIRONMENTS, INITIAL, ITERATIONS = 2, 40, 20


def make_loop(jit_compile=False, seed=3, reward_batch=ENVIRONMENTS):
    environment = native.load(
        "CartPole-v1", ENVIRONMENTS, seed=seed, max_episode_steps=30
    )
    specs = environment.observation_spec(), environment.action_spec()
    agent = agents.DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        networks.QNetwork(*specs, fc_layer_params=(), seed=seed),
        keras.optimizers.Adam(1e-2),
        gamma=0.9,
        seed=seed,
        observation_normalizer=StreamingTensorNormalizer(specs[0]),
        reward_normalizer=RewardNormalizer(reward_batch, gamma=0.9),
    )
    agent.initialize()
    replay_buffer = TFUniformReplayBuffer(
        agent.collect_data_spec, ENVIRONMENTS, 1_000, seed=seed
    )
    return train.OffPolicyLoop(
        environment,
        agent,
        replay_buffer,
        initial_collect_steps=INITIAL,
        sample_batch_size=8,
        seed=seed,
        sampling="variables",
        jit_compile=jit_compile,
    )


def state(loop):
    return [v.numpy() for v in loop.agent.variables()]


def frames_of(loop):
    return loop.checkpoint_items()["replay_buffer"].gather_all()


def check_moments(normalizer, observations):
    count, means, squares, _ = normalizer.variables
    flat = observations.numpy().reshape(-1, *observations.shape[2:]).astype(np.float64)
    assert count == len(flat)
    np.testing.assert_allclose(means, flat.mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(squares / len(flat), flat.var(0), rtol=1e-4)


@pytest.fixture(scope="module")
def plain():
    loop = make_loop()
    infos = loop.run(ITERATIONS // 2), loop.run(ITERATIONS // 2)
    assert loop.trace_count() == 1
    return loop, infos, state(loop)


def test_each_collected_observation_counts_once(plain):
    loop, *_ = plain
    frames = frames_of(loop)
    assert frames.reward.shape == [ENVIRONMENTS, INITIAL // ENVIRONMENTS + ITERATIONS]
    check_moments(loop.agent.observation_normalizer, frames.observation)


def test_replay_keeps_raw_values(plain):
    loop, *_ = plain
    frames = frames_of(loop)
    # CartPole's position moves by its speed times 0.02 seconds.
    position, speed = frames.observation[..., 0], frames.observation[..., 1]
    moved = ~(frames.is_boundary()[:, :-1])
    steps = (position[:, 1:] - position[:, :-1])[moved]
    np.testing.assert_allclose(steps, 0.02 * speed[:, :-1][moved], atol=1e-6)
    assert set(frames.reward.numpy().ravel()) == {0.0, 1.0}


def test_rewards_are_scaled_by_the_returns_of_each_environment(plain):
    loop, *_ = plain
    frames = frames_of(loop)
    running, returns = np.zeros(ENVIRONMENTS), []
    for t in range(frames.reward.shape[1]):
        first = frames.step_type[:, t].numpy() == 0
        running = frames.reward[:, t].numpy() + 0.9 * np.where(first, 0, running)
        returns += list(running[~frames.is_boundary()[:, t].numpy()])
    np.testing.assert_allclose(
        loop.agent.reward_normalizer.normalize(tf.constant([1.0])),
        [1 / np.std(returns)],
        rtol=1e-5,
    )


def test_evaluation_leaves_the_statistics(plain):
    loop, *_ = plain
    before = state(loop)
    environment = native.load("CartPole-v1", 3, seed=1, max_episode_steps=30)
    evaluate.Evaluator(environment, loop.agent.policy, 3).run()
    for old, new in zip(before, state(loop), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.slow  # So do PPO's loops, with normalizers: `test_on_policy_training.py`.
def test_a_compiled_loop_gives_the_results_of_a_plain_one(plain):
    _, infos, expected = plain
    loop = make_loop(jit_compile=True)
    others = loop.run(ITERATIONS // 2), loop.run(ITERATIONS // 2)
    assert loop.trace_count() == 1
    np.testing.assert_allclose(infos, others, rtol=1e-4)
    variables = loop.agent.variables()
    for variable, one, other in zip(variables, expected, state(loop), strict=True):
        # The carries of compensated sums are what their rounding leaves.
        if not variable.name.startswith("m2_carry"):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_restored_loop_goes_on_bit_for_bit(plain, tmp_path):
    loop, *_ = plain
    path = tf.train.Checkpoint(**loop.checkpoint_items()).write(str(tmp_path / "loop"))
    expected = loop.run(5), state(loop)
    other = make_loop(seed=8)
    restored = tf.train.Checkpoint(**other.checkpoint_items()).read(path)
    restored.assert_existing_objects_matched()
    assert other.run(5) == expected[0]
    for one, old in zip(state(other), expected[1], strict=True):
        np.testing.assert_array_equal(one, old)
    tf.train.Checkpoint(**loop.checkpoint_items()).read(path)  # For the other tests.


def test_a_reward_normalizer_of_other_environments_is_refused():
    with pytest.raises(ValueError, match="reward_normalizer: expected batch_size=2"):
        make_loop(reward_batch=3)


@pytest.mark.slow
def test_an_episodic_loop_trains_with_the_statistics_of_acting():
    environment = tf_py_environment.TFPyEnvironment(testing.RecallEnvironment())
    specs = environment.observation_spec(), environment.action_spec()
    agent = agents.ReinforceAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        networks.ActorDistributionNetwork(*specs, fc_layer_params=(), seed=1),
        keras.optimizers.Adam(1e-2),
        observation_normalizer=StreamingTensorNormalizer(specs[0]),
    )
    count = agent.observation_normalizer.variables[0]
    seen, train_once = [], agent.train

    def spy(experience):
        note = tf.py_function(lambda n: seen.append(int(n)), [count.read_value()], [])
        with tf.control_dependencies([note]):
            return train_once(experience)

    agent.train = spy
    replay_buffer = TFUniformReplayBuffer(agent.collect_data_spec, 1, 20)
    loop = train.EpisodicLoop(
        environment, agent, replay_buffer, collect_episodes_per_iteration=2, seed=1
    )
    loop.run(3)
    # Two episodes of three steps, and the boundary between them.
    assert seen == [0, 7, 14]
    assert count == 21


def test_an_offline_loop_takes_the_statistics_of_its_data(plain):
    collecting, *_ = plain
    replay_buffer = collecting.checkpoint_items()["replay_buffer"]
    agent = make_loop(seed=5).agent
    loop = train.OfflineLoop(agent, replay_buffer, sample_batch_size=8, seed=1)
    check_moments(agent.observation_normalizer, frames_of(collecting).observation)
    scale = agent.reward_normalizer.normalize(tf.constant([1.0]))
    np.testing.assert_allclose(
        scale,
        collecting.agent.reward_normalizer.normalize(tf.constant([1.0])),
        rtol=1e-5,
    )
    loop.run(2)
    check_moments(agent.observation_normalizer, frames_of(collecting).observation)


@pytest.mark.slow
def test_a_sweep_has_statistics_of_each_run():
    result = train.sweep(
        lambda seed: make_loop(True, seed=seed),
        [7, 8],
        num_iterations=ITERATIONS,
        eval_interval=ITERATIONS,
        num_eval_episodes=2,
    )
    for run_number, seed in enumerate([7, 8]):
        loop = make_loop(True, seed=seed)
        loop.run(ITERATIONS)
        swept = result.restore(run_number).agent.variables()
        for one, other in zip(loop.agent.variables(), swept, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-3, atol=1e-4)
