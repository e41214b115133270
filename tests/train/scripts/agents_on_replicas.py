"""Trains each kind of agent on one device and on two replicas; prints what differs.

The replicas are given the two halves of each batch. Gradients are clipped, and the
optimizers are plain gradient descent, which shows a gradient that is scaled or clipped
at the wrong place. The arguments are names of `AGENTS`; none takes all.

Logical devices can be set before TensorFlow starts only, so this is a process.
"""

import dataclasses
import json
import sys
from unittest import mock

import keras
import numpy as np
import tensorflow as tf

from tests.agents import every_agent
from tfrl import losses, networks, testing
from tfrl.agents import ppo
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

BATCH_SIZE, STEPS = 8, 3
TIME_STEP = ts.time_step_spec(tensor_spec.BoundedTensorSpec([3], tf.float32, -1.0, 1.0))
NORMALIZED = {"normalize_observations": True, "normalize_rewards": True}
KINDS = {
    **every_agent.KINDS,
    "SacAgent-bins": dataclasses.replace(
        every_agent.KINDS["SacAgent"],
        networks=lambda parts: [parts.ensemble(2, 7), parts.squashed()],
    ),
}
BINS = losses.HlGauss(-3.0, 3.0, 7)
# The name of each agent, with its kind and further arguments.
AGENTS = {
    **{n: (n, {}) for n, k in every_agent.KINDS.items() if not k.without_weights},
    "PPOAgent, 3 epochs": ("PPOAgent", {"num_epochs": 3}),
    "PPOAgent, KL cutoff": (
        "PPOAgent",
        {"kl_cutoff_factor": 1e-6, "kl_cutoff_coef": 1e3, "num_epochs": 2},
    ),
    "PPOClipAgent, 2 epochs": (
        "PPOClipAgent",
        {
            **NORMALIZED,
            "num_epochs": 2,
            "update_normalizers_in_train": True,
            "compute_value_and_advantage_in_train": True,
        },
    ),
    "PPOKLPenaltyAgent, 2 epochs": (
        "PPOKLPenaltyAgent",
        {**NORMALIZED, "num_epochs": 2},
    ),
    "ReinforceAgent, entropy": ("ReinforceAgent", {"entropy_regularization": 0.1}),
    "PPOClipAgent, RND": ("PPOClipAgent", {"rnd": None, "num_epochs": 2}),
    "SacAgent, bins": ("SacAgent-bins", {"td_errors_loss_fn": BINS}),
    "Td3Agent, late actor": ("Td3Agent", {"actor_update_period": 2}),
}


def make_agent(name):
    kind, arguments = AGENTS[name]
    if "rnd" in arguments:
        arguments = {**arguments, "rnd": make_rnd()}
    clipping = "adaptive_clipping" if "Dreamer" in name else "gradient_clipping"
    with mock.patch.object(keras.optimizers, "Adam", make_sgd):
        return KINDS[kind].make(TIME_STEP, **{clipping: 0.02}, **arguments)


def make_rnd():
    """Returns the bonus of unknown observations, with new networks."""

    def network(units, seed):
        return networks.EncodingNetwork(
            TIME_STEP.observation, fc_layer_params=units, seed=seed
        )

    return ppo.RandomNetworkDistillation(
        network((4,), 1), network((5, 4), 2), 0.5, BATCH_SIZE, gamma=0.9
    )


def make_sgd(rate):
    del rate
    return keras.optimizers.SGD(0.5)


def make_batch(agent, seed):
    """Returns experience whose first half has more episodes and boundaries."""
    batch = testing.AgentConformance().make_experience(agent, BATCH_SIZE, seed)
    if agent.train_sequence_length is not None:
        return batch
    first, mid, last = ts.StepType.FIRST, ts.StepType.MID, ts.StepType.LAST

    def with_row(values, row):
        return tf.concat([tf.constant([row], values.dtype), values[1:]], axis=0)

    return batch._replace(
        step_type=with_row(batch.step_type, [first, mid, last, first, mid]),
        next_step_type=with_row(batch.next_step_type, [mid, last, first, mid, last]),
        discount=with_row(batch.discount, [1, 0, 1, 1, 0]),
    )


def divided(strategy, nest):
    """Returns examples `[B, ...]` as the values of the replicas, a part for each."""

    def divide(leaf):
        parts = tf.split(leaf, strategy.num_replicas_in_sync)
        return strategy.experimental_distribute_values_from_function(
            lambda context: parts[context.replica_id_in_sync_group]
        )

    return tf.nest.map_structure(divide, nest)


def numbers(variables):
    return [np.asarray(v, np.float64) for v in variables]


def largest_difference(some, others):
    return max(
        float(np.abs(a - b).max()) for a, b in zip(some, others, strict=True) if a.size
    )


def scalars(strategy, loss_info):
    """Returns the means over replicas of the scalars of a `LossInfo`, by name."""
    extra = loss_info.extra._asdict() if hasattr(loss_info.extra, "_asdict") else {}
    found = {**extra, "loss": loss_info.loss}
    local = {k: strategy.experimental_local_results(v) for k, v in found.items()}
    return {
        k: float(np.mean(v))
        for k, v in local.items()
        if tf.is_tensor(v[0]) and v[0].shape.rank == 0
    }


def compare(strategy, name):
    """Returns in what an agent of two replicas differs from one of a device."""
    alone = make_agent(name)
    with strategy.scope():
        shared = make_agent(name)
    trained = [v for v in alone.variables() if v.trainable and v.dtype.is_floating]
    before = numbers(v.numpy() for v in trained)
    train = tf.function(alone.train, autograph=False)
    train_shared = tf.function(
        lambda batch: strategy.run(shared.train, args=(batch,)), autograph=False
    )
    for seed in range(STEPS):
        batch = make_batch(alone, seed)
        of_one = scalars(tf.distribute.get_strategy(), train(batch))
        of_two = scalars(strategy, train_shared(divided(strategy, batch)))
    # The mean of the shares of halves is not the share of the whole.
    of_one.pop("explained_variance", None)
    after = numbers(v.numpy() for v in alone.variables())
    copies = zip(
        *(strategy.experimental_local_results(v) for v in shared.variables()),
        strict=True,
    )
    first, second = map(numbers, copies)
    return {
        "difference": largest_difference(after, first),
        "between_replicas": largest_difference(first, second),
        "moved": largest_difference(numbers(v.numpy() for v in trained), before),
        "scalars": max(abs(of_two[key] - value) for key, value in of_one.items()),
    }


def two_replicas():
    """Returns a strategy of two logical CPUs; call it before TensorFlow starts."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    one = tf.config.LogicalDeviceConfiguration()
    tf.config.set_logical_device_configuration(cpu, [one, one])
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def main():
    strategy = two_replicas()
    for name in sys.argv[1:] or AGENTS:
        print(json.dumps({name: compare(strategy, name)}), flush=True)


if __name__ == "__main__":
    main()
