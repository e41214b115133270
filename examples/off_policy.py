"""Makes the buffers and loops of the examples that learn actions from replay.

The configurations have the same fields for replay and for the loop.
"""

from __future__ import annotations

from examples import cli
from tfrl import agents, environments, replay_buffers, train


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
        seed=config.seed,
        jit_compile="auto" if config.jit_compile else False,
    )
