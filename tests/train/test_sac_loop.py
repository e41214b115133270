"""Off-policy loops of SAC and its kin."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents, networks, policies, train
from tfrl.environments import native
from tfrl.eval import evaluate
from tfrl.replay_buffers import TFPrioritizedReplayBuffer

ITERATIONS = 20


def make_loop(
    jit_compile, seed=3, rate=1e-2, width=8, tau=0.05, episode_steps=15, **kwargs
):
    """An ensemble with random subsets, two kinds of noise and prioritized replay.

    One kind is in the state of the collecting policy, the other in variables.
    """
    environment = native.load(
        "Pendulum-v1", 2, seed=seed, max_episode_steps=episode_steps
    )
    specs = environment.observation_spec(), environment.action_spec()
    agent = agents.SacAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        networks.CriticEnsembleNetwork(
            specs, 3, fc_layer_params=(width,) * 2, seed=seed
        ),
        networks.ActorDistributionNetwork(
            *specs,
            fc_layer_params=(width,) * 2,
            continuous_projection_net=networks.StateDependentNoiseProjectionNetwork,
            seed=seed,
        ),
        *(keras.optimizers.Adam(rate) for _ in range(3)),
        target_update_tau=tau,
        gamma=0.98,
        greedy_eval=True,
        num_min=2,
        exploration=lambda policy: policies.OUNoisePolicy(
            policies.StateDependentNoisePolicy(policy, sample_freq=4, seed=seed),
            0.2,
            0.15,
            seed=seed,
        ),
        seed=seed,
    )
    agent.initialize()
    replay_buffer = TFPrioritizedReplayBuffer(
        agent.collect_data_spec, environment.batch_size, 20_000, seed=seed
    )
    arguments = {"initial_collect_steps": 60, "sample_batch_size": 8, **kwargs}
    return train.OffPolicyLoop(
        environment,
        agent,
        replay_buffer,
        seed=seed,
        sampling="variables",
        jit_compile=jit_compile,
        **arguments,
    )


def state(loop):
    return [v.numpy() for v in loop.agent.variables()]


def run(jit_compile):
    loop = make_loop(jit_compile)
    infos = [loop.run(ITERATIONS // 2), loop.run(ITERATIONS // 2)]
    assert loop.trace_count() == 1
    return loop, infos, state(loop)


@pytest.fixture(scope="module")
def plain():
    return run(jit_compile=False)


def test_a_compiled_loop_gives_the_results_of_a_plain_one(plain):
    _, infos, weights = plain
    _, *others = run(jit_compile=True)
    np.testing.assert_allclose(infos, others[0], rtol=1e-4)
    for one, other in zip(weights, others[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_restored_loop_goes_on_bit_for_bit(plain, tmp_path):
    loop, *_ = plain
    path = tf.train.Checkpoint(**loop.checkpoint_items()).write(str(tmp_path / "loop"))
    expected = loop.run(5), state(loop)
    other = make_loop(False, seed=8)
    restored = tf.train.Checkpoint(**other.checkpoint_items()).read(path)
    restored.assert_existing_objects_matched()
    assert other.run(5) == expected[0]
    for one, old in zip(state(other), expected[1], strict=True):
        np.testing.assert_array_equal(one, old)


@pytest.mark.slow
def test_a_sweep_trains_each_run_as_if_it_were_alone():
    rates = {7: 1e-2, 8: 3e-3}
    result = train.sweep(
        lambda seed, rate: make_loop(True, seed=seed, rate=rate),
        list(rates),
        {"rate": list(rates.values())},
        num_iterations=ITERATIONS,
        eval_interval=ITERATIONS,
        num_eval_episodes=2,
    )
    for run_number, (seed, rate) in enumerate(rates.items()):
        loop = make_loop(True, seed=seed, rate=rate)
        loop.run(ITERATIONS)
        swept = result.restore(run_number).agent.variables()
        for one, other in zip(loop.agent.variables(), swept, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_it_learns_to_swing_up_a_pendulum():
    loop = make_loop(
        True,
        rate=1e-3,
        width=64,
        tau=0.005,
        episode_steps=200,
        sample_batch_size=64,
    )
    loop.run(10_000)
    result = evaluate.Evaluator(
        native.load("Pendulum-v1", 100, seed=1), loop.agent.policy, 100
    ).run()
    assert result.mean > -200
