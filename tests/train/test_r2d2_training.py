"""R2D2 in the fused loop: plain, compiled, resumed, and in a maze with a cue."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.train import test_recurrent_training as mazes
from tfrl import losses
from tfrl.agents import R2d2Agent
from tfrl.environments import TFPyEnvironment, native
from tfrl.networks import QRnnNetwork
from tfrl.replay_buffers import TFPrioritizedReplayBuffer
from tfrl.train import OffPolicyLoop

INITIAL = 30  # Steps of a random policy.
SMALL = {
    "input_fc_layer_params": None,
    "lstm_size": (4,),
    "output_fc_layer_params": None,
}


def make_agent(environment, seed=3, **kwargs):
    arguments = {"burn_in_length": 1, "n_step_update": 2, "target_update_period": 3}
    agent = R2d2Agent(
        environment.time_step_spec(),
        environment.action_spec(),
        QRnnNetwork(
            environment.observation_spec(),
            environment.action_spec(),
            **SMALL,
            seed=seed,
        ),
        keras.optimizers.Adam(1e-2),
        epsilon_greedy=0.3,
        seed=seed,
        **{**arguments, **kwargs},
    )
    agent.initialize()
    return agent


def make_loop(jit_compile=False, seed=3):
    environment = native.load("CartPole-v1", 2, seed=seed, max_episode_steps=12)
    agent = make_agent(environment)
    return OffPolicyLoop(
        environment,
        agent,
        TFPrioritizedReplayBuffer(agent.collect_data_spec, 2, 100, seed=seed),
        initial_collect_steps=INITIAL,
        collect_steps_per_iteration=2,
        sample_batch_size=4,
        sampling="variables",
        sequence_length=4,
        seed=seed,
        jit_compile=jit_compile,
        priority_fn=losses.sequence_priorities,
    )


def ran(jit_compile):
    """A loop after 20 iterations in two calls."""
    loop = make_loop(jit_compile)
    loop.run(10)
    loop.run(10)
    return loop


@pytest.fixture(scope="module")
def plain():
    return ran(jit_compile=False)


def frames_of(loop):
    return loop.checkpoint_items()["replay_buffer"].gather_all()


def numbers_of(loop):
    held = [*loop.agent.variables(), *tf.nest.flatten(frames_of(loop))]
    return [np.asarray(each) for each in held]


@pytest.mark.slow  # XLA takes ten seconds.
def test_compiled_equals_plain_and_both_trace_once(plain):
    compiled = ran(jit_compile=True)
    pairs = zip(numbers_of(plain), numbers_of(compiled), strict=True)
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)
    assert plain.trace_count() == compiled.trace_count() == 1


@pytest.mark.slow
def test_the_states_of_the_agents_own_steps_are_stored(plain):
    frames = frames_of(plain)
    is_zero = (frames.policy_info["policy_state"][0].numpy() == 0).all(axis=-1)
    # The actions of the initial steps come from no network.
    num_initial = INITIAL // 2
    assert is_zero[:, :num_initial].all()
    is_first = frames.is_first().numpy()
    is_first[:, num_initial] = True
    own = slice(num_initial, None)
    np.testing.assert_array_equal(is_zero[:, own], is_first[:, own])


@pytest.mark.slow
def test_it_is_resumed_bit_for_bit(plain, tmp_path):
    whole = plain
    path = tf.train.Checkpoint(**whole.checkpoint_items()).write(str(tmp_path / "c"))
    restored = make_loop()
    tf.train.Checkpoint(**restored.checkpoint_items()).read(path)
    for loop in (whole, restored):
        loop.run(5)
    pairs = zip(numbers_of(restored), numbers_of(whole), strict=True)
    for ours, theirs in pairs:
        np.testing.assert_array_equal(ours, theirs)


def trained_in_a_maze(length, iterations, seed=0):
    environment = TFPyEnvironment(mazes.TMaze(length, seed))
    specs = environment.observation_spec(), environment.action_spec()
    agent = R2d2Agent(
        environment.time_step_spec(),
        environment.action_spec(),
        QRnnNetwork(*specs, **mazes.SMALL, seed=seed),
        keras.optimizers.Adam(5e-3),
        # The cue is in the burn-in, for sequences that begin with an episode.
        burn_in_length=2,
        n_step_update=3,
        epsilon_greedy=0.2,
        gamma=0.95,
        target_update_period=10,
        seed=seed,
    )
    agent.initialize()
    buffer = TFPrioritizedReplayBuffer(
        agent.collect_data_spec, mazes.BATCH, 1000, seed=seed
    )
    loop = OffPolicyLoop(
        environment,
        agent,
        buffer,
        collect_steps_per_iteration=4,
        initial_collect_steps=40 * mazes.BATCH,
        sample_batch_size=32,
        sampling="variables",
        sequence_length=length + 4,
        seed=seed,
        priority_fn=losses.sequence_priorities,
    )
    loop.run(iterations)
    return agent


def test_r2d2_remembers_the_cue():
    agent = trained_in_a_maze(length=3, iterations=100)
    assert mazes.success(agent.policy, length=3) >= 0.95


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_it_does_over_three_seeds_in_a_longer_maze():
    found = [
        mazes.success(trained_in_a_maze(10, 400, seed).policy, 10, seed + 1000)
        for seed in range(3)
    ]
    assert min(found) >= 0.95
