"""Trains REINFORCE on any Gymnasium environment whose episodes end.

    python -m examples.train_reinforce
    python -m examples.train_reinforce --config.use_baseline --num_iterations=500

The settings are in configs/reinforce.py. To resume a run that was interrupted or
killed, run the same command again. train_reinforce_service.py does the same training
with a queue of episodes in a server.
"""

from __future__ import annotations

from examples import cli, runs, training
from tfrl import agents, environments, networks, replay_buffers, train

CONFIG = cli.define_config("reinforce")


def main() -> None:
    """Trains REINFORCE."""
    config = cli.read_config(CONFIG)
    runs.run(config, {"reinforce": "REINFORCE"}, make_agent, make_loop)


def make_agent(
    config: cli.Config, environment: environments.TFPyEnvironment
) -> agents.ReinforceAgent:
    """Makes the agent, with a state-value baseline if the configuration asks for it."""
    import keras  # Not at the top: --help does not wait for TensorFlow.

    observation_spec = environment.observation_spec()
    common = training.network_arguments(config, environment)
    actor = networks.ActorDistributionNetwork(
        observation_spec,
        environment.action_spec(),
        fc_layer_params=tuple(config.fc_layer_params),
        seed=config.seed,
        **common,
    )
    baseline = None
    if config.use_baseline:
        baseline = networks.ValueNetwork(
            observation_spec,
            fc_layer_params=tuple(config.fc_layer_params),
            seed=config.seed + 1,
            **common,
        )
    return agents.ReinforceAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        actor_network=actor,
        optimizer=keras.optimizers.Adam(config.learning_rate),
        value_network=baseline,
        gamma=config.gamma,
        normalize_returns=config.normalize_returns,
        entropy_regularization=config.entropy_regularization,
        seed=config.seed,
    )


def make_loop(
    config: cli.Config,
    environment: environments.TFPyEnvironment,
    agent: agents.ReinforceAgent,
) -> train.EpisodicLoop:
    """Makes the loop, with its buffer."""
    return train.EpisodicLoop(
        environment,
        agent,
        make_replay_buffer(config, environment, agent),
        collect_episodes_per_iteration=config.collect_episodes_per_iteration,
        seed=config.seed,
        jit_compile="auto" if config.jit_compile else False,
    )


def make_replay_buffer(
    config: cli.Config,
    environment: environments.TFPyEnvironment,
    agent: agents.ReinforceAgent,
) -> replay_buffers.TFUniformReplayBuffer:
    """Makes the buffer for the episodes of an iteration."""
    if config.replay != "uniform":
        raise ValueError(
            f"replay: got {config.replay!r}, expected 'uniform'; for 'service' run "
            "python -m examples.train_reinforce_service, with the same other flags."
        )
    # On the CPU, where the environment fills it.
    with train.device_scope("CPU:0"):
        return replay_buffers.TFUniformReplayBuffer(
            agent.collect_data_spec,
            batch_size=environment.batch_size,
            max_length=config.replay_capacity // environment.batch_size,
            seed=config.seed,
        )


if __name__ == "__main__":
    cli.start(main)
