"""Off-policy loops of agents with continuous actions."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents, networks, train
from tfrl.environments import native, suite_gym, tf_py_environment
from tfrl.eval import evaluate
from tfrl.replay_buffers import TFPrioritizedReplayBuffer, TFUniformReplayBuffer
from tfrl.utils import ou_process

AGENTS = {
    # With noise in variables, prioritized replay and two steps.
    "ddpg": (
        agents.DdpgAgent,
        {
            "ou_stddev": 0.2,
            "ou_damping": 0.15,
            "n_step_update": 2,
            "reset_noise_at_episode_start": True,
        },
        TFPrioritizedReplayBuffer,
    ),
    # With random numbers in the losses and delayed updates.
    "td3": (
        agents.Td3Agent,
        {
            "actor_update_period": 2,
            "target_update_period": 2,
            "noise_scaled_to_spec": True,
        },
        TFUniformReplayBuffer,
    ),
}
ITERATIONS = 20


def make_loop(
    kind, jit_compile, environment=None, seed=3, rate=1e-2, width=8, tau=0.05, **kwargs
):
    environment = environment or native.load(
        "Pendulum-v1", 2, seed=seed, max_episode_steps=15
    )
    agent_class, arguments, buffer_class = AGENTS[kind]
    specs = environment.observation_spec(), environment.action_spec()
    agent = agent_class(
        environment.time_step_spec(),
        environment.action_spec(),
        networks.ActorNetwork(*specs, (width,) * 2, seed=seed),
        networks.CriticNetwork(
            specs, joint_fc_layer_params=(width,) * 2, seed=seed + 1
        ),
        keras.optimizers.Adam(rate),
        keras.optimizers.Adam(rate),
        target_update_tau=tau,
        gamma=0.98,
        seed=seed,
        **arguments,
    )
    agent.initialize()
    replay_buffer = buffer_class(
        agent.collect_data_spec, environment.batch_size, 20_000, seed=seed
    )
    arguments = {"initial_collect_steps": 60, "sample_batch_size": 8, **kwargs}
    loop = train.OffPolicyLoop(
        environment,
        agent,
        replay_buffer,
        seed=seed,
        sampling="variables",
        jit_compile=jit_compile,
        **arguments,
    )
    return loop, replay_buffer


def state(loop):
    """Weights, targets, slots, counters and noise."""
    noise = [
        part.value
        for part in loop.agent.collect_policy.submodules
        if isinstance(part, ou_process.OUProcess)
    ]
    return [v.numpy() for v in [*loop.agent.variables(), *noise]]


def frames(replay_buffer):
    return tf.nest.map_structure(lambda t: t.numpy(), replay_buffer.gather_all())


def run(kind, jit_compile):
    """Returns a loop after some iterations, their counters, and its state."""
    loop, replay_buffer = make_loop(kind, jit_compile)
    infos = [loop.run(ITERATIONS // 2), loop.run(ITERATIONS // 2)]
    assert loop.trace_count() == 1
    assert infos[1].train_steps == ITERATIONS
    return loop, infos, state(loop), frames(replay_buffer)


@pytest.fixture(scope="module", params=AGENTS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def plain(kind):
    return run(kind, jit_compile=False)


@pytest.mark.parametrize(
    "kind", ["td3", pytest.param("ddpg", marks=pytest.mark.slow)], indirect=True
)
def test_a_compiled_loop_gives_the_results_of_a_plain_one(kind, plain):
    _, infos, weights, experience = plain
    _, *others = run(kind, jit_compile=True)
    assert infos[1].episodes > 0
    np.testing.assert_allclose(infos, others[0], rtol=1e-4)
    assert len(weights) == len(others[1]) > 30
    for one, other in zip(weights, others[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    for one, other in zip(
        tf.nest.flatten(experience), tf.nest.flatten(others[2]), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_initial_actions_fill_the_range_and_later_ones_stay_inside(plain):
    actions = plain[3].action[..., 0]
    initial, later = actions[:, :30], actions[:, 30:]
    assert -2 <= initial.min() < -1.8
    assert 1.8 < initial.max() <= 2
    # The actor starts in the middle; what is left is noise.
    assert np.abs(later).max() < 1.9
    assert len(np.unique(later)) == later.size


def test_a_loop_restored_before_its_first_call_goes_on_bit_for_bit(
    kind, plain, tmp_path
):
    loop, _, before, _ = plain
    checkpoint = tf.train.Checkpoint(**loop.checkpoint_items())
    path = checkpoint.write(str(tmp_path / "loop"))
    expected = loop.run(5), state(loop)
    other, _ = make_loop(kind, False, seed=8)
    restored = tf.train.Checkpoint(**other.checkpoint_items()).read(path)
    restored.assert_existing_objects_matched()
    for one, old in zip(state(other), before, strict=True):
        np.testing.assert_array_equal(one, old)
    assert other.run(5) == expected[0]
    for one, old in zip(state(other), expected[1], strict=True):
        np.testing.assert_array_equal(one, old)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["native", "Gymnasium"])
def test_other_environments_compile(kind, name):
    environment = (
        native.load("MountainCarContinuous-v0", seed=0)
        if name == "native"
        else tf_py_environment.TFPyEnvironment(suite_gym.load("Pendulum-v1"))
    )
    loop, _ = make_loop(kind, True, environment)
    loop.run(1)
    info = loop.run(250)
    assert info.train_steps == 251
    assert np.isfinite(info.loss)
    assert loop.trace_count() == 1


@pytest.mark.slow
def test_a_sweep_trains_each_run_as_if_it_were_alone(kind):
    rates = {7: 1e-2, 8: 3e-3}
    result = train.sweep(
        lambda seed, rate: make_loop(kind, True, seed=seed, rate=rate)[0],
        list(rates),
        {"rate": list(rates.values())},
        num_iterations=ITERATIONS,
        eval_interval=ITERATIONS,
        num_eval_episodes=2,
    )
    for run, (seed, rate) in enumerate(rates.items()):
        loop, _ = make_loop(kind, True, seed=seed, rate=rate)
        loop.run(ITERATIONS)
        for one, other in zip(
            loop.agent.variables(),
            result.restore(run).agent.variables(),
            strict=True,
        ):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_they_learn_to_swing_up_a_pendulum(kind):
    loop, _ = make_loop(
        kind,
        True,
        native.load("Pendulum-v1", seed=0),
        rate=1e-3,
        width=64,
        tau=0.005,
        initial_collect_steps=1000,
        sample_batch_size=64,
    )
    loop.run(15_000)
    result = evaluate.Evaluator(
        native.load("Pendulum-v1", 100, seed=1), loop.agent.policy, 100
    ).run()
    assert result.mean > -200
