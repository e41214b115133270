"""A small experiment, which workers can import."""

import dataclasses

import keras

from tfrl import agents, distribute, networks, replay_service
from tfrl.environments import native

NUM_STEPS, BATCH_SIZE, NUM_ENVS = 5, 4, 2
CHECKPOINT_INTERVAL = 20

# The environments that were made in this process and not closed.
open_environments = []


def make_environment(seed, name="CartPole-v1"):
    environment = native.load(name, NUM_ENVS, seed)
    open_environments.append(environment)
    environment.close = lambda: open_environments.remove(environment)
    return environment


def make_impala(environment):
    specs = environment.observation_spec(), environment.action_spec()
    return agents.ImpalaAgent(
        environment.time_step_spec(),
        specs[1],
        keras.optimizers.Adam(1e-3),
        networks.ActorDistributionNetwork(*specs, fc_layer_params=(8,), seed=1),
        networks.ValueNetwork(specs[0], fc_layer_params=(8,), seed=2),
    )


def make_queue(name, signature):
    return replay_service.Table.queue(name, 8, signature=signature)


def make_replay(name, signature):
    return replay_service.Table(
        name,
        sampler=replay_service.selectors.Prioritized(0.6),
        remover=replay_service.selectors.Fifo(),
        max_size=10_000,
        rate_limiter=replay_service.rate_limiters.SampleToInsertRatio(4.0, 50, 200.0),
        signature=signature,
    )


IMPALA = distribute.Experiment(
    make_environment,
    make_impala,
    make_queue,
    sequence_length=NUM_STEPS + 1,
    stride_length=NUM_STEPS,
    batch_size=BATCH_SIZE,
    push_period=2,
    pull_period=NUM_STEPS,
    make_run_settings=lambda _: {"checkpoint_interval": CHECKPOINT_INTERVAL},
    jit_compile=False,
)


def make_experiment(seed):
    """What workers import, with the settings of the run."""
    return dataclasses.replace(IMPALA, seed=seed)
