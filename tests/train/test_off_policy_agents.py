"""Off-policy loops of every actor-critic agent, plain and compiled.

Each test takes the two loops of an agent as the tests before it have left them.
"""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.agents import every_agent
from tests.pairs import some_slow
from tests.train import memory
from tfrl import policies, train
from tfrl.environments import native, suite_gym, tf_py_environment
from tfrl.eval import evaluate
from tfrl.replay_buffers import TFPrioritizedReplayBuffer, TFUniformReplayBuffer
from tfrl.utils import common

ITERATIONS = 20
Setting = collections.namedtuple(
    "Setting", "arguments replay_buffer environment", defaults=["Pendulum-v1"]
)
SETTINGS = {
    # With noise in variables, prioritized replay and two steps.
    "DdpgAgent": Setting(
        {
            "ou_stddev": 0.2,
            "ou_damping": 0.15,
            "n_step_update": 2,
            "reset_noise_at_episode_start": True,
        },
        TFPrioritizedReplayBuffer,
    ),
    # With a distribution as the critic's output, and returns over several steps.
    "D4pgAgent": Setting({"n_step_update": 3}, TFPrioritizedReplayBuffer),
    # With random numbers in the losses and delayed updates.
    "Td3Agent": Setting(
        {
            "actor_update_period": 2,
            "target_update_period": 2,
            "noise_scaled_to_spec": True,
        },
        TFUniformReplayBuffer,
    ),
    "SacAgent": Setting({}, TFUniformReplayBuffer),
    # REDQ, with noise in the policy's state and in variables.
    "SacAgent-ensemble": Setting(
        {
            "exploration": lambda policy: policies.OUNoisePolicy(
                policies.StateDependentNoisePolicy(policy, sample_freq=4), 0.2, 0.15
            )
        },
        TFPrioritizedReplayBuffer,
    ),
    # With dropout in every pass.
    "DroqAgent": Setting({}, TFUniformReplayBuffer),
    "TqcAgent": Setting({}, TFUniformReplayBuffer),
    # With statistics in layers, and without target networks.
    "CrossQAgent": Setting({}, TFUniformReplayBuffer),
    # With a loop in every action and in the targets.
    "QtOptAgent": Setting({"delayed_target_update_period": 2}, TFUniformReplayBuffer),
    "MpoAgent": Setting({}, TFUniformReplayBuffer),
    # With a distribution as the critic's output, and returns over several steps.
    "DmpoAgent": Setting({"n_step_update": 3}, TFPrioritizedReplayBuffer),
    "DiscreteSacAgent": Setting({}, TFUniformReplayBuffer, "CartPole-v1"),
    # With noise in the layers, and all that Rainbow has.
    "CategoricalDqnAgent-rainbow": Setting(
        {"n_step_update": 3}, TFPrioritizedReplayBuffer, "CartPole-v1"
    ),
    "QrDqnAgent": Setting({}, TFPrioritizedReplayBuffer, "CartPole-v1"),
    # With random fractions in the loss.
    "IqnAgent": Setting({}, TFUniformReplayBuffer, "CartPole-v1"),
}


# What differs between agents is compared on plain loops, in `tests/agents`. XLA takes
# ten seconds for one agent; `test_compiled_loop.py` compiles a loop in the fast tests.
COMPILED = some_slow([*SETTINGS], fast=[])
DETERMINISTIC = some_slow(["DdpgAgent", "Td3Agent"], fast=["Td3Agent"])
CONTINUOUS = some_slow(
    ["DdpgAgent", "Td3Agent", "SacAgent", "CrossQAgent"], fast=["SacAgent"]
)


def make_loop(
    name,
    jit_compile,
    environment=None,
    seed=3,
    rate=1e-2,
    layers=(4, 4),
    tau=0.05,
    **kwargs,
):
    setting = SETTINGS[name]
    environment = environment or native.load(
        setting.environment, 2, seed=seed, max_episode_steps=15
    )
    agent = every_agent.KINDS[name].make(
        environment.time_step_spec(),
        environment.action_spec(),
        layers,
        seed,
        rate,
        gamma=0.98,
        **({} if name == "CrossQAgent" else {"target_update_tau": tau}),
        **setting.arguments,
    )
    replay_buffer = setting.replay_buffer(
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
    """Weights, targets, slots, counters and noise."""
    noise = [
        part.value
        for part in loop.agent.collect_policy.submodules
        if isinstance(part, common.OUProcess)
    ]
    return [v.numpy() for v in [*loop.agent.variables(), *noise]]


def checkpoint(loop):
    return tf.train.Checkpoint(**loop.checkpoint_items())


class Ran:
    """A loop after some iterations, with their counters, its state and its frames."""

    def __init__(self, name, jit_compile):
        self.loop = make_loop(name, jit_compile)
        self.infos = [self.loop.run(1) for _ in range(ITERATIONS)]
        self.state = state(self.loop)
        replay_buffer = self.loop.checkpoint_items()["replay_buffer"]
        self.frames = tf.nest.map_structure(np.asarray, replay_buffer.gather_all())


@pytest.fixture(scope="module", params=COMPILED)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def plain(name):
    return Ran(name, jit_compile=False)


@pytest.fixture(scope="module")
def compiled(name):
    return Ran(name, jit_compile=True)


def test_compiled_is_plain(plain, compiled):
    """Numbers drawn, frames, losses of each update, and all variables."""
    assert plain.infos[-1].train_steps == ITERATIONS
    assert plain.infos[-1].episodes > 0
    np.testing.assert_allclose(plain.infos, compiled.infos, rtol=1e-4)
    assert len(plain.state) > 20
    for one, other in zip(plain.state, compiled.state, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    for one, other in zip(
        tf.nest.flatten(plain.frames), tf.nest.flatten(compiled.frames), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_a_restored_compiled_loop_goes_on_bit_for_bit(compiled, tmp_path):
    loop = compiled.loop
    path = checkpoint(loop).write(str(tmp_path / "loop"))
    expected = loop.run(5), state(loop)
    checkpoint(loop).read(path).assert_existing_objects_matched()
    assert loop.run(5) == expected[0]
    for one, old in zip(state(loop), expected[1], strict=True):
        np.testing.assert_array_equal(one, old)


def test_many_iterations_add_no_trace_and_no_memory(plain, compiled):
    compiled.loop.run(100)
    before = memory.resident_megabytes()
    compiled.loop.run(500)
    assert memory.resident_megabytes() - before < 4
    assert plain.loop.trace_count() == compiled.loop.trace_count() == 1


@pytest.mark.parametrize("name", DETERMINISTIC, indirect=True)
def test_initial_actions_fill_the_range_and_later_ones_stay_inside(plain):
    actions = plain.frames.action[..., 0]
    initial, later = actions[:, :30], actions[:, 30:]
    assert -2 <= initial.min() < -1.8
    assert 1.8 < initial.max() <= 2
    # The actor starts in the middle; what is left is noise.
    assert np.abs(later).max() < 1.9
    assert len(np.unique(later)) == later.size


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTINUOUS, indirect=True)
def test_a_loop_restored_before_its_first_call_goes_on_bit_for_bit(
    name, plain, tmp_path
):
    loop = plain.loop
    path = checkpoint(loop).write(str(tmp_path / "loop"))
    before = state(loop)
    expected = loop.run(5), state(loop)
    other = make_loop(name, False, seed=8)
    checkpoint(other).read(path).assert_existing_objects_matched()
    for one, old in zip(state(other), before, strict=True):
        np.testing.assert_array_equal(one, old)
    assert other.run(5) == expected[0]
    for one, old in zip(state(other), expected[1], strict=True):
        np.testing.assert_array_equal(one, old)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["native", "Gymnasium"])
@pytest.mark.parametrize("name", ["DdpgAgent", "Td3Agent"])
def test_other_environments_compile(name, kind):
    environment = (
        native.load("MountainCarContinuous-v0", seed=0)
        if kind == "native"
        else tf_py_environment.TFPyEnvironment(suite_gym.load("Pendulum-v1"))
    )
    loop = make_loop(name, True, environment)
    loop.run(1)
    info = loop.run(250)
    assert info.train_steps == 251
    assert np.isfinite(info.loss)
    assert loop.trace_count() == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *CONTINUOUS,
        "QtOptAgent",
        "D4pgAgent",
        "DmpoAgent",
        "CategoricalDqnAgent-rainbow",
        "IqnAgent",
    ],
)
def test_a_sweep_trains_each_run_as_if_it_were_alone(name):
    rates = {7: 1e-2, 8: 3e-3}
    result = train.sweep(
        lambda seed, rate: make_loop(name, True, seed=seed, rate=rate),
        list(rates),
        {"rate": list(rates.values())},
        num_iterations=ITERATIONS,
        eval_interval=ITERATIONS,
        num_eval_episodes=2,
    )
    for run, (seed, rate) in enumerate(rates.items()):
        loop = make_loop(name, True, seed=seed, rate=rate)
        loop.run(ITERATIONS)
        for one, other in zip(
            loop.agent.variables(),
            result.restore(run).agent.variables(),
            strict=True,
        ):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["DdpgAgent", "Td3Agent", "SacAgent-ensemble"])
def test_they_learn_to_swing_up_a_pendulum(name):
    loop = make_loop(
        name,
        True,
        native.load("Pendulum-v1", seed=0),
        rate=1e-3,
        layers=(64, 64),
        tau=0.005,
        initial_collect_steps=1000,
        sample_batch_size=64,
    )
    loop.run(15_000)
    result = evaluate.Evaluator(
        native.load("Pendulum-v1", 100, seed=1), loop.agent.policy, 100
    ).run()
    assert result.mean > -200
