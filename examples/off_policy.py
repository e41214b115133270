"""Makes the buffers and loops of the examples that learn actions from replay.

The configurations have the same fields for replay and for the loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from examples import cli
from tfrl import agents, environments, losses, replay_buffers, train


def make_replay_buffer(
    config: cli.Config,
    environment: environments.TFEnvironment,
    agent: agents.TFAgent,
) -> replay_buffers.TFUniformReplayBuffer | replay_buffers.TFPrioritizedReplayBuffer:
    """Makes the buffer, which samples uniformly or by the TD errors."""
    arguments = {
        "data_spec": agent.collect_data_spec,
        "batch_size": environment.batch_size,
        "max_length": config.replay_capacity // environment.batch_size,
        "seed": config.seed,
        "row_format": row_format(config, environment),
    }
    if config.replay == "uniform":
        return replay_buffers.TFUniformReplayBuffer(**arguments)
    if config.replay != "prioritized":
        raise ValueError(
            f"replay: got {config.replay!r}, expected 'uniform' or 'prioritized'; set "
            "--replay, or edit the configuration file. DQN has 'service', too: "
            "python -m examples.train_dqn_service, with the same other flags."
        )
    import keras

    importance_exponent = keras.optimizers.schedules.PolynomialDecay(
        config.importance_exponent,
        config.num_iterations * config.train_steps_per_iteration,
        config.final_importance_exponent,
    )
    return replay_buffers.TFPrioritizedReplayBuffer(
        **arguments,
        priority_exponent=config.priority_exponent,
        importance_exponent=importance_exponent,
        step=agent.train_step_counter,
    )


def make_loop(
    config: cli.Config,
    environment: environments.TFEnvironment,
    agent: agents.TFAgent,
) -> train.OffPolicyLoop:
    """Makes the loop, with its buffer."""
    with train.device_scope(config.device):
        replay_buffer = make_replay_buffer(config, environment, agent)
    return train.OffPolicyLoop(
        environment,
        agent,
        replay_buffer,
        collect_steps_per_iteration=config.collect_steps_per_iteration,
        train_steps_per_iteration=config.train_steps_per_iteration,
        initial_collect_steps=config.initial_collect_steps,
        sample_batch_size=config.batch_size,
        sequence_length=sequence_length(config),
        seed=config.seed,
        jit_compile="auto" if config.jit_compile else False,
        priority_fn=priority_fn(config),
    )


def row_format(
    config: Mapping[str, Any], environment: environments.TFEnvironment
) -> replay_buffers.RowFormat | None:
    """Returns the form in which the buffer stores frames; None for unchanged frames.

    With `frame_stack`, it stores each frame of a stacked observation once; with
    `goals_per_step`, it relabels goals.
    """
    frame_stack = config.get("frame_stack", 0)
    if frame_stack:
        return replay_buffers.FrameStacking(frame_stack)
    goals = config.get("goals_per_step", 0)
    return replay_buffers.Hindsight.of(environment, goals) if goals else None


def sequence_length(config: cli.Config) -> int | None:
    """Returns the number of frames in a sequence; None without a `trace_length`."""
    trace = config.get("trace_length", 0)
    return config.burn_in_length + trace + 1 if trace else None


def priority_fn(config: cli.Config) -> Callable[[Any], Any]:
    """Returns the function that turns TD errors into priorities."""
    eta = config.get("priority_eta", 1.0)
    return functools.partial(losses.sequence_priorities, eta=eta)
