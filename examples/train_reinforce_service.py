"""Trains REINFORCE with its episodes in a replay server, a separate process.

    python -m examples.train_reinforce_service
    python -m examples.train_reinforce_service --config.use_baseline

It has the agent, settings and outputs of train_reinforce.py. To resume an interrupted
run, run the same command again; this also resumes a run that an earlier version started
by `train_reinforce --replay=service`. The queue is empty between iterations, so
checkpoints do not include it.
"""

from __future__ import annotations

from examples import train_reinforce
from tfrl import agents, replay_buffers, replay_service, specs, train
from tfrl.algorithms import registry
from tfrl.command import cli, runs


def main() -> None:
    """Builds the agent, the server's buffer and the loop, and runs it."""
    config = cli.read_config(train_reinforce.CONFIG, replay="service")
    # The queue holds all episodes of an iteration.
    cli.check_at_most(config, "collect_episodes_per_iteration", "replay_capacity")
    if config.num_envs != 1:
        # The queue does not record which environment an episode is from.
        raise ValueError(f"num_envs: got {config.num_envs}, expected 1 with a queue.")
    cli.prepare("reinforce", config)
    algorithm = registry.algorithm_of(config)
    with train.device_scope(config.device):
        agent = algorithm.make_agent()
        agent.initialize()
        runs.load_initial_weights("reinforce", config, agent)
    loop = train.EpisodicLoop(
        algorithm.environment,
        agent,
        make_replay_buffer(config, agent),
        collect_episodes_per_iteration=config.collect_episodes_per_iteration,
        seed=config.seed,
    )
    runs.run_loop(config, loop, cli.make_directory("reinforce", config))


def make_replay_buffer(
    config: cli.Config, agent: agents.ReinforceAgent
) -> replay_buffers.ReverbReplayBuffer:
    """Makes a queue of episodes in a server process, with an observer that fills it."""
    table = replay_service.Table.queue(
        "episodes",
        max_size=config.replay_capacity,
        signature=specs.tensor_spec.add_outer_dim(agent.collect_data_spec),
    )

    def make_observer(
        client: replay_service.Client,
    ) -> replay_buffers.ReverbAddEpisodeObserver:
        return replay_buffers.ReverbAddEpisodeObserver(
            client, table.name, max_sequence_length=config.replay_capacity
        )

    return replay_buffers.ReverbReplayBuffer(
        agent.collect_data_spec,
        table.name,
        sequence_length=None,
        local_server=replay_service.Server([table]),
        make_observer=make_observer,
    )


if __name__ == "__main__":
    cli.start(main)
