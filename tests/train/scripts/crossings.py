"""Prints which tensors of plain loops go from the device to the host, as JSON.

The agents live on CPU:1, in place of a GPU. The logical devices of a process cannot be
changed later, so this is a script. Nothing is trained: the loops are only traced.
"""

import json

import numpy as np
import tensorflow as tf

from tests.agents import every_agent
from tests.train import gpu_walk
from tfrl import train
from tfrl.environments import (
    native,
    random_py_environment,
    suite_gym,
    tf_py_environment,
)
from tfrl.replay_buffers import TFPrioritizedReplayBuffer, TFUniformReplayBuffer
from tfrl.specs import BoundedArraySpec

DEVICE = "CPU:1"


def gymnasium(name):
    return tf_py_environment.TFPyEnvironment(suite_gym.load(name))


def of_images():
    return tf_py_environment.TFPyEnvironment(
        random_py_environment.RandomPyEnvironment(
            BoundedArraySpec([8, 8, 3], np.uint8, 0, 255),
            BoundedArraySpec([], np.int64, 0, 1),
        )
    )


def native_cart_pole():
    return native.load("CartPole-v1", batch_size=2)


def make_agent(kind, environment, **kwargs):
    specs = environment.time_step_spec(), environment.action_spec()
    return every_agent.KINDS[kind].make(*specs, **kwargs)


def off_policy(kind, environment, buffer=TFUniformReplayBuffer, **kwargs):
    agent = make_agent(kind, environment)
    replay_buffer = buffer(
        agent.collect_data_spec, environment.batch_size, max_length=50
    )
    return train.OffPolicyLoop(
        environment,
        agent,
        replay_buffer,
        initial_collect_steps=10,
        sample_batch_size=32,
        **kwargs,
    )


def on_policy(kind, environment, **kwargs):
    agent = make_agent(
        kind,
        environment,
        compute_value_and_advantage_in_train=False,
        update_normalizers_in_train=False,
        normalize_rewards=False,
    )
    return train.OnPolicyLoop(
        environment, agent, collect_steps_per_iteration=32, **kwargs
    )


def episodic(kind, environment):
    agent = make_agent(kind, environment)
    with train.device_scope("CPU:0"):
        replay_buffer = TFUniformReplayBuffer(agent.collect_data_spec, 1, max_length=50)
    return train.EpisodicLoop(environment, agent, replay_buffer)


FOUR = {"collect_steps_per_iteration": 4, "train_steps_per_iteration": 4}
EPOCHS = {"num_epochs": 2, "minibatch_size": 8}
KINDS = {
    "dqn": lambda: off_policy("DqnAgent", gymnasium("CartPole-v1")),
    "dqn of images": lambda: off_policy("DqnAgent", of_images()),
    "dqn, four steps and updates": lambda: off_policy(
        "DqnAgent", gymnasium("CartPole-v1"), **FOUR
    ),
    "dqn prioritized": lambda: off_policy(
        "DqnAgent", gymnasium("CartPole-v1"), TFPrioritizedReplayBuffer
    ),
    "sac": lambda: off_policy("SacAgent", gymnasium("Pendulum-v1")),
    "ppo": lambda: on_policy("PPOClipAgent", gymnasium("Pendulum-v1"), **EPOCHS),
    "reinforce": lambda: episodic("ReinforceAgent", gymnasium("CartPole-v1")),
    "native dqn": lambda: off_policy("DqnAgent", native_cart_pole()),
    "native ppo": lambda: on_policy("PPOClipAgent", native_cart_pole(), **EPOCHS),
}


def trace_of(loop):
    batch_size = loop.environment.batch_size
    state = loop.agent.collect_policy.get_initial_state(batch_size)
    position = loop.environment.reset(), state
    # One iteration: a loop's own steps are counted as often as they are taken.
    one = tf.constant(1, tf.int64)
    return loop._call.get_concrete_function(position, one, loop._zero_loss)


def crossings_of(make):
    with train.device_scope(DEVICE):
        loop = make()
    trace = trace_of(loop)
    found = gpu_walk.crossings(trace, loop._placement.collecting_device, "CPU:0")
    return {
        # What the host needs of the weights to collect.
        "weights": sum(c.times for c in found if c.source == "ReadVariableOp"),
        "others": [c for c in found if c.source != "ReadVariableOp"],
    }


if __name__ == "__main__":
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    print(json.dumps({name: crossings_of(make) for name, make in KINDS.items()}))
