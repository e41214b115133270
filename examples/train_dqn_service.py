"""Trains DQN, C51 and the like with their replay in a server, a separate process.

    python -m examples.train_dqn_service
    python -m examples.train_dqn_service --env=Acrobot-v1 --seed=3

It has the agents, settings and outputs of train_dqn.py. To resume an interrupted run,
run the same command again; this also resumes a run that an earlier version started by
`train_dqn --replay=service`. The server's checkpoints are beside the agent's.
"""

from __future__ import annotations

from examples import train_dqn
from tfrl import agents, environments, replay_buffers, replay_service, specs, train
from tfrl.algorithms import registry
from tfrl.command import cli, runs


def main() -> None:
    """Builds the agent, the server's buffer and the loop, and runs it."""
    config = cli.read_config(train_dqn.CONFIG, replay="service")
    cli.check_at_most(config, "batch_size", "replay_capacity")
    name = cli.agent_name(config, train_dqn.NAMES)
    cli.prepare(name, config)
    algorithm = registry.algorithm_of(config)
    with train.device_scope(config.device):
        agent = algorithm.make_agent()
        agent.initialize()
        runs.load_initial_weights(name, config, agent)
    directory = cli.make_directory(name, config)
    loop = train.OffPolicyLoop(
        algorithm.environment,
        agent,
        make_replay_buffer(config, algorithm.environment, agent, directory),
        collect_steps_per_iteration=config.collect_steps_per_iteration,
        train_steps_per_iteration=config.train_steps_per_iteration,
        initial_collect_steps=config.initial_collect_steps,
        sample_batch_size=config.batch_size,
        seed=config.seed,
    )
    runs.run_loop(config, loop, directory)


def make_replay_buffer(
    config: cli.Config,
    environment: environments.TFEnvironment,
    agent: agents.DqnAgent,
    directory: train.RunDirectory,
) -> replay_buffers.ReverbReplayBuffer:
    """Makes uniform replay in a server process, with observers that write to it."""
    num_steps = config.n_step_update + 1
    table = replay_service.Table(
        "experience",
        sampler=replay_service.selectors.Uniform(),
        remover=replay_service.selectors.Fifo(),
        max_size=config.replay_capacity,
        rate_limiter=replay_service.rate_limiters.MinSize(config.batch_size),
        signature=specs.tensor_spec.add_outer_dim(agent.collect_data_spec, num_steps),
    )
    checkpoints = directory.checkpoints / "replay"
    server = replay_service.Server(
        [table],
        checkpointer=replay_service.checkpointers.DefaultCheckpointer(checkpoints),
        seed=config.seed,
    )

    def make_observer(
        client: replay_service.Client,
    ) -> replay_buffers.ReverbTrajectorySequenceObserver:
        return replay_buffers.ReverbTrajectorySequenceObserver(
            client, table.name, sequence_length=num_steps
        )

    return replay_buffers.ReverbReplayBuffer(
        agent.collect_data_spec,
        table.name,
        sequence_length=num_steps,
        local_server=server,
        make_observer=make_observer,
        batch_size=environment.batch_size,
    )


if __name__ == "__main__":
    cli.start(main)
