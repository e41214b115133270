"""On-policy loops with PQN: it learns, compiled and plain loops agree, it resumes."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import train
from tfrl.agents import PqnAgent
from tfrl.environments import native
from tfrl.networks import QNetwork, QRnnNetwork
from tfrl.utils.tensor_normalizer import StreamingTensorNormalizer

BATCH_SIZE = 4


def make_loop(seed=1, learning_rate=3e-3, recurrent=False, limit=500, **kwargs):
    environment = native.load("CartPole-v1", BATCH_SIZE, seed, max_episode_steps=limit)
    specs = environment.observation_spec(), environment.action_spec()
    if recurrent:
        small = {"input_fc_layer_params": None, "lstm_size": (4,)}
        network = QRnnNetwork(*specs, **small, seed=seed)
    else:
        network = QNetwork(*specs, fc_layer_params=(32,), layer_norm=True, seed=seed)
    agent = PqnAgent(
        environment.time_step_spec(),
        specs[1],
        network,
        keras.optimizers.Adam(learning_rate),
        epsilon_greedy=keras.optimizers.schedules.PolynomialDecay(1.0, 600, 0.05),
        observation_normalizer=StreamingTensorNormalizer(specs[0]),
        seed=seed,
    )
    settings = {
        "collect_steps_per_iteration": 32,
        "num_epochs": 4,
        "minibatch_size": 32,
        "seed": seed,
    }
    return train.OnPolicyLoop(environment, agent, **{**settings, **kwargs})


def held(loop):
    # The carries of compensated sums are what their rounding leaves.
    return [v.numpy() for v in loop.agent.variables() if "carry" not in v.name]


@pytest.fixture(scope="module")
def compiled():
    return make_loop(jit_compile=True)


@pytest.mark.slow
def test_it_learns_to_balance_the_pole(compiled):
    # A random policy balances it for 22 steps.
    assert compiled.run(3).train_steps == 3 * 4 * 4
    info = compiled.run(97)
    assert info.average_return > 150
    assert compiled.trace_count() == 1
    numbers = compiled.agent.diagnose(compiled.draw_for_log())
    assert {"q_value", "td_error", "gradient_norm", "epsilon"} <= {*numbers}
    assert all(np.isfinite(list(numbers.values())))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run_and_a_plain_loop_the_same_numbers(
    compiled, tmp_path
):
    plain = make_loop()
    plain.run(1)
    path = tf.train.Checkpoint(**plain.checkpoint_items()).write(str(tmp_path / "c"))
    ended = []
    for loop in (plain, compiled, compiled):
        tf.train.Checkpoint(**loop.checkpoint_items()).read(path)
        loop.run(2)
        ended.append(held(loop))
    for ours, theirs, again in zip(*ended, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(theirs, again)


@pytest.mark.slow  # `test_on_policy_training.py` trains a recurrent PPO agent so.
def test_a_recurrent_network_trains_on_whole_rollouts():
    loop = make_loop(recurrent=True, limit=20, minibatch_size=64)
    before = held(loop)
    assert loop.run(2).train_steps == 2 * 4 * 2
    assert any(np.any(a != b) for a, b in zip(before, held(loop), strict=True))
    with pytest.raises(ValueError, match="expected one of 32, 64, 128, each a number"):
        make_loop(recurrent=True, minibatch_size=16)


@pytest.mark.slow  # `test_on_policy_training.py` sweeps the same loop with PPO.
def test_a_sweeps_runs_are_those_alone():
    result = train.sweep(
        make_loop,
        [1, 2],
        {"learning_rate": [1e-2, 1e-3]},
        num_iterations=3,
        eval_interval=3,
        num_eval_episodes=2,
        num_threads=1,
    )
    alone = make_loop(2, 1e-3)
    alone.run(3)
    for found, expected in zip(held(result.restore(1)), held(alone), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
