"""Trains on two logical CPU devices and prints the results as JSON.

Python environments are called on CPU:0; agents live on CPU:1, or on CPU:0 for
comparison. The logical devices of a process cannot be changed later, so this is a
script. Its first argument says which results: "fast" or "slow". In the first case a
fork of it, which shares the imports, trains once, plain, while TensorFlow writes to the
file of the second argument where it places each operation.
"""

import json
import os
import pathlib
import sys
import tempfile
import warnings
from unittest import mock

import keras
import numpy as np
import tensorflow as tf

from tests import int32_handles
from tests.agents import every_agent
from tfrl import train
from tfrl.agents import DqnAgent, PPOClipAgent, ReinforceAgent
from tfrl.compilation import compile_errors, internals
from tfrl.environments import native, suite_gym, tf_py_environment
from tfrl.metrics import tf_metrics
from tfrl.networks import ActorDistributionNetwork, QNetwork, ValueNetwork
from tfrl.replay_buffers import TFPrioritizedReplayBuffer, TFUniformReplayBuffer
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import StreamingTensorNormalizer


def make_devices(log_placement=False, soft_placement=False):
    tf.debugging.set_log_device_placement(log_placement)
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    # Without it, an operation that cannot run on the device it is put on is an error.
    tf.config.set_soft_device_placement(soft_placement)


def gymnasium_cart_pole(**kwargs):
    environment = suite_gym.load("CartPole-v1", **kwargs)
    environment.seed(3)
    return tf_py_environment.TFPyEnvironment(environment)


def normalizers(environment):
    return {
        "observation_normalizer": StreamingTensorNormalizer(
            environment.observation_spec()
        ),
        "reward_normalizer": RewardNormalizer(environment.batch_size),
    }


def dqn_loop(device, **kwargs):
    environment = kwargs.pop("environment", None) or gymnasium_cart_pole()
    epsilon_greedy = kwargs.pop("epsilon_greedy", 0.1)
    optimizer = kwargs.pop("optimizer", keras.optimizers.Adam)
    with train.device_scope(device):
        agent = DqnAgent(
            environment.time_step_spec(),
            environment.action_spec(),
            q_network=QNetwork(
                environment.observation_spec(),
                environment.action_spec(),
                fc_layer_params=(16,),
                seed=1,
            ),
            optimizer=optimizer(1e-3),
            epsilon_greedy=epsilon_greedy,
            seed=2,
            **normalizers(environment),
        )
        agent.initialize()
    return off_policy_loop(device, environment, agent, **kwargs)


def gymnasium_pendulum():
    environment = suite_gym.load("Pendulum-v1")
    environment.seed(3)
    return tf_py_environment.TFPyEnvironment(environment)


def continuous_loop(name, device, **kwargs):
    environment = gymnasium_pendulum()
    with train.device_scope(device):
        agent = every_agent.KINDS[name].make(
            environment.time_step_spec(), environment.action_spec()
        )
    return off_policy_loop(device, environment, agent, **kwargs)


def noisy_loop(device, **kwargs):
    """A loop whose policy assigns to the agent's weights: the state of its seeds."""
    environment = gymnasium_cart_pole()
    with train.device_scope(device):
        agent = every_agent.KINDS["CategoricalDqnAgent-rainbow"].make(
            environment.time_step_spec(), environment.action_spec()
        )
    return off_policy_loop(device, environment, agent, **kwargs)


def off_policy_loop(
    device,
    environment,
    agent,
    buffer=TFUniformReplayBuffer,
    buffer_device=None,
    **kwargs,
):
    with train.device_scope(buffer_device or device):
        replay_buffer = buffer(
            agent.collect_data_spec,
            batch_size=environment.batch_size,
            max_length=500,
            seed=4,
        )
    return train.OffPolicyLoop(
        environment,
        agent,
        replay_buffer,
        seed=0,
        **{
            "initial_collect_steps": 40,
            "sample_batch_size": 16,
            "collect_steps_per_iteration": 2,
            **kwargs,
        },
    )


def reinforce_loop(device, jit_compile):
    # A time limit, so that the last observations are needed, too.
    environment = gymnasium_cart_pole(max_episode_steps=12)
    with train.device_scope(device):
        agent = ReinforceAgent(
            environment.time_step_spec(),
            environment.action_spec(),
            actor_network=ActorDistributionNetwork(
                environment.observation_spec(),
                environment.action_spec(),
                fc_layer_params=(16,),
                seed=1,
            ),
            optimizer=keras.optimizers.Adam(1e-3),
            value_network=ValueNetwork(
                environment.observation_spec(), fc_layer_params=(16,), seed=3
            ),
            seed=2,
            **normalizers(environment),
        )
        agent.initialize()
    with train.device_scope("CPU:0"):
        replay_buffer = TFUniformReplayBuffer(
            agent.collect_data_spec, batch_size=1, max_length=600, seed=4
        )
    return train.EpisodicLoop(
        environment,
        agent,
        replay_buffer,
        collect_episodes_per_iteration=2,
        seed=0,
        jit_compile=jit_compile,
    )


def ppo_loop(device, jit_compile):
    environment = gymnasium_pendulum()
    specs = environment.time_step_spec(), environment.action_spec()
    with train.device_scope(device):
        agent = PPOClipAgent(
            *specs,
            keras.optimizers.Adam(1e-3),
            ActorDistributionNetwork(
                specs[0].observation, specs[1], fc_layer_params=(16,), seed=1
            ),
            ValueNetwork(specs[0].observation, fc_layer_params=(16,), seed=3),
            importance_ratio_clipping=0.2,
            use_gae=True,
            num_epochs=1,
            compute_value_and_advantage_in_train=False,
            update_normalizers_in_train=False,
            normalize_observations=False,
            normalize_rewards=False,
            seed=2,
        )
    return train.OnPolicyLoop(
        environment,
        agent,
        collect_steps_per_iteration=16,
        num_epochs=2,
        minibatch_size=8,
        seed=0,
        jit_compile=jit_compile,
    )


def weights(loop):
    return [variable.numpy() for variable in loop.agent.variables()]


def difference(ours, theirs):
    """The largest difference between two lists of weights."""
    pairs = zip(ours, theirs, strict=True)
    # A bandit's agent has a boolean, too.
    return max(float(np.max(np.abs(a - 1.0 * b))) for a, b in pairs)


def ran(loop, *calls):
    for iterations in calls:
        loop.run(iterations)
    return loop


def comparison(there, here):
    """Compares two loops that did the same on two devices."""
    return {
        "difference": difference(weights(there), weights(here)),
        "same_counts": there.info()[1:4] == here.info()[1:4],
        "train_steps": there.info().train_steps,
        "compiled": there._jit_compile,
        "traces": there.trace_count(),
        "agent_devices": devices(there.agent.variables()),
        "loop_devices": devices([there._step, *there._episodes.variables]),
    }


def without_copies(device):
    """A plain loop where tensors cannot stand for variables."""
    missing = mock.patch.object(
        internals, "obstacle_to_substitution", return_value="a name"
    )
    with missing:
        return dqn_loop(device, sampling="variables")


def devices(variables):
    return sorted({variable.device[-5:] for variable in variables})


def resumed(loop):
    """How far a loop that goes on is from what it does after it is restored."""
    with tempfile.TemporaryDirectory() as directory:
        path = str(pathlib.Path(directory, "saved"))
        saved = tf.train.Checkpoint(**loop.checkpoint_items()).write(path)
        expected = gone_on(loop)
        tf.train.Checkpoint(**loop.checkpoint_items()).read(saved)
    return difference(expected, gone_on(loop))


def gone_on(loop):
    """The weights after ten more iterations."""
    # Gymnasium's CartPole gives no state, so a new episode begins.
    loop.environment.seed(11)
    loop._position.set(None, None)
    return weights(ran(loop, 10))


def native_loop(device):
    return dqn_loop(device, environment=native_cart_pole(device), jit_compile=True)


def swept_weights(iterations):
    """The weights of each run of a sweep on the agent's device."""
    with train.device_scope("CPU:1"):
        result = train.sweep(
            lambda seed: native_loop("CPU:1"),
            [0, 1],
            num_iterations=iterations,
            eval_interval=iterations,
            num_eval_episodes=2,
        )
    return [weights(result.restore(run)) for run in range(2)]


def error(make):
    try:
        made = make()
        if made is not None:
            made.run(1)
    except ValueError as raised:
        return str(raised)
    return None


def observed(make=dqn_loop, **kwargs):
    with tf.device("CPU:1"):
        metric = tf_metrics.EnvironmentSteps()
    return make("CPU:1", observers=[metric], **kwargs)


class FirstSteps(tf.Module):
    """An observer of a user, who counts in int32."""

    def __init__(self):
        super().__init__()
        self.count = tf.Variable(0, name="first_steps")

    def __call__(self, frame):
        self.count.assign_add(tf.math.count_nonzero(frame.is_first(), dtype=tf.int32))


def counting_in_int32(**kwargs):
    environment = native_cart_pole("CPU:1")
    # As on a GPU, whatever the scope.
    with int32_handles.recorded(on_the_host=True), tf.device("CPU:1"):
        observer = FirstSteps()
    return dqn_loop("CPU:1", environment=environment, observers=[observer], **kwargs)


def normalized_elsewhere(**kwargs):
    environment = native_cart_pole("CPU:1")
    with tf.device("CPU:0"):
        outside = normalizers(environment)
    with mock.patch(f"{__name__}.normalizers", return_value=outside):
        return dqn_loop("CPU:1", environment=environment, **kwargs)


def adafactor_loop(**kwargs):
    # It holds variables of int32 that it never uses.
    with int32_handles.recorded(on_the_host=True) as made:
        loop = dqn_loop("CPU:1", optimizer=keras.optimizers.Adafactor, **kwargs)
    assert made
    return loop


def uses_another_device():
    """What a compiled function says of a variable that no part of a loop holds."""
    with tf.device("CPU:0"):
        rate = tf.Variable(0.5, name="rate")
    with tf.device("CPU:1"), compile_errors.explained():
        tf.function(lambda: 2 * rate, jit_compile=True)()


def warning(make):
    """What a loop says when it is made."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
    return [str(each.message) for each in caught]


def host_observer_on_device(**kwargs):
    return dqn_loop(
        "CPU:1",
        environment=native_cart_pole("CPU:1"),
        observers=[train.host_observer(print)],
        **kwargs,
    )


def scheduled(device="CPU:1", **kwargs):
    with tf.device("CPU:1"):
        epsilon = tf.Variable(0.5)
    return dqn_loop(device, epsilon_greedy=lambda: epsilon, **kwargs)


def native_cart_pole(device):
    with train.device_scope(device):
        return native.load("CartPole-v1", batch_size=4, seed=3)


def compared(make, *calls):
    """Compares the loops that `make` builds on the two devices."""
    return comparison(*(ran(make(device), *calls) for device in ("CPU:1", "CPU:0")))


def fast():
    plain, plain_here = (dqn_loop(d, sampling="variables") for d in ("CPU:1", "CPU:0"))
    # What a host observer sees of the frames of a compiled loop.
    frames = []
    with tf.device("CPU:1"):
        observer = train.host_observer(frames.append)
    compiled = dqn_loop("CPU:1", observers=[observer], jit_compile="auto")
    compiled_here = dqn_loop("CPU:0", jit_compile="auto")
    for each in (plain, plain_here, compiled, compiled_here):
        ran(each, 10, 10)
    return {
        "dqn plain": comparison(plain, plain_here),
        "dqn compiled": comparison(compiled, compiled_here),
        "seen by a host observer": [
            len(frames),
            int(compiled.checkpoint_items()["replay_buffer"].num_frames()),
        ],
        "resumed plain": resumed(plain),
        "resumed compiled": resumed(compiled),
        "errors": {
            "unknown device": error(lambda: dqn_loop("GPU:7")),
            "dataset": error(lambda: dqn_loop("CPU:1", sampling="dataset")),
            "buffer": error(
                lambda: dqn_loop("CPU:1", buffer_device="CPU:0", jit_compile=True)
            ),
            "environment": error(
                lambda: dqn_loop(
                    "CPU:1", environment=native_cart_pole("CPU:0"), jit_compile=True
                )
            ),
            "observer": error(lambda: observed(jit_compile=True)),
            "host observer": error(lambda: host_observer_on_device(jit_compile=True)),
            "schedule": error(lambda: scheduled(jit_compile=True)),
            "observer and schedule, plain": error(lambda: observed(scheduled)),
            "observer, auto": error(lambda: observed(jit_compile="auto")),
            "normalizer": error(lambda: normalized_elsewhere(jit_compile=True)),
            "int32": error(lambda: counting_in_int32(jit_compile=True)),
            "no part's": error(uses_another_device),
        },
        "warnings": {
            "observer": warning(lambda: observed(jit_compile="auto")),
            "int32": warning(lambda: counting_in_int32(jit_compile="auto")),
            "adafactor": warning(lambda: adafactor_loop(jit_compile="auto")),
            "nothing": warning(lambda: dqn_loop("CPU:1", jit_compile="auto")),
            "plain": warning(lambda: observed(jit_compile=False)),
        },
    }


def slow():
    alone, alone_here = (ran(native_loop(d), 20) for d in ("CPU:1", "CPU:0"))
    plain_here = ran(dqn_loop("CPU:0", sampling="variables"), 20)
    return {
        "dqn native": comparison(alone, alone_here),
        # The results do not depend on how the loop gets its weights and samples.
        "dqn plain without copies": comparison(
            ran(without_copies("CPU:1"), 20), plain_here
        ),
        "dqn dataset on the host": comparison(
            ran(dqn_loop("CPU:1", buffer_device="CPU:0", sampling="dataset"), 20),
            plain_here,
        ),
        "dqn prioritized": compared(
            lambda d: dqn_loop(d, buffer=TFPrioritizedReplayBuffer, jit_compile=True),
            20,
        ),
        "td3 plain": compared(
            lambda d: continuous_loop("Td3Agent", d, sampling="variables"), 5, 5
        ),
        "sac compiled": comparison(
            ran(continuous_loop("SacAgent", "CPU:1", jit_compile=True), 5, 5),
            ran(continuous_loop("SacAgent", "CPU:0", sampling="variables"), 5, 5),
        ),
        "noisy plain": compared(lambda d: noisy_loop(d, sampling="variables"), 5, 5),
        "noisy compiled": comparison(
            ran(noisy_loop("CPU:1", jit_compile=True), 5, 5),
            ran(noisy_loop("CPU:0", sampling="variables"), 5, 5),
        ),
        "reinforce plain": compared(lambda d: reinforce_loop(d, False), 2, 2),
        "reinforce compiled": comparison(
            ran(reinforce_loop("CPU:1", True), 2, 2),
            ran(reinforce_loop("CPU:0", False), 2, 2),
        ),
        "ppo plain": compared(lambda d: ppo_loop(d, False), 2, 2),
        "ppo compiled": comparison(
            ran(ppo_loop("CPU:1", "auto"), 2, 2), ran(ppo_loop("CPU:0", False), 2, 2)
        ),
        "sweep": [difference(swept, weights(alone)) for swept in swept_weights(20)],
    }


def log_placement(path):
    """Trains once, with TensorFlow's standard error in a file."""
    os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), 2)
    make_devices(log_placement=True)
    traced = dqn_loop("CPU:1", sampling="variables")
    while not traced._start():
        pass
    print("The initial collection is done.", file=sys.stderr, flush=True)
    traced.run(3)


def main(part, log):
    if part == "slow":
        make_devices()
        print(json.dumps(slow()))
        return
    child = os.fork()
    if not child:
        log_placement(log)
        return
    make_devices()
    print(json.dumps(fast()))
    sys.exit(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    main(*sys.argv[1:])
