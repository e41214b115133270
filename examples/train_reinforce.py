"""Trains REINFORCE on any Gymnasium environment with episodes that end.

    python -m examples.train_reinforce
    python -m examples.train_reinforce --config.use_baseline --num_iterations=500
    python -m examples.train_reinforce --replay=service

The settings are in configs/reinforce.py. Interrupt it, or kill it, and run the same
command again to go on.
"""

import keras

from examples import cli
from tfrl import replay_service, train
from tfrl.agents.reinforce import reinforce_agent
from tfrl.environments import tf_py_environment
from tfrl.eval import evaluate
from tfrl.networks import actor_distribution_network, value_network
from tfrl.replay_buffers import (
    reverb_replay_buffer,
    reverb_utils,
    tf_uniform_replay_buffer,
)
from tfrl.specs import tensor_spec

_CONFIG = cli.define_config("reinforce")


def main() -> None:
    config = cli.read_config(_CONFIG)
    environment = cli.make_environment(config.env, config.num_envs, config.seed)
    agent = make_agent(config, environment)
    agent.initialize()
    loop = train.EpisodicLoop(
        environment,
        agent,
        make_replay_buffer(config, environment, agent),
        collect_episodes_per_iteration=config.collect_episodes_per_iteration,
        seed=config.seed,
        jit_compile="auto" if config.jit_compile else False,
    )

    # All episodes of an evaluation run side by side, from starts of their own.
    eval_environment = cli.make_environment(config.env, config.num_eval_episodes, 0)
    evaluator = evaluate.Evaluator(
        eval_environment, agent.policy, config.num_eval_episodes, seed=config.seed
    )

    def evaluate_policy(iteration: int) -> evaluate.EvaluationResult:
        eval_environment.seed(10_000_000 + 1_000 * iteration)
        return evaluator.run()

    directory = cli.make_directory("reinforce", config)
    run = train.Run(
        loop,
        directory,
        num_iterations=config.num_iterations,
        evaluate=evaluate_policy,
        eval_interval=config.eval_interval,
        log_interval=config.log_interval,
        checkpoint_interval=config.checkpoint_interval,
        video_environment=cli.make_environment(config.env, 1, 1),
        title=f"REINFORCE on {config.env}, seed {config.seed}",
    )
    cli.report(run.run(), directory)


def make_agent(
    config: cli.Config, environment: tf_py_environment.TFPyEnvironment
) -> reinforce_agent.ReinforceAgent:
    """The agent, with a state-value baseline if asked for."""
    layers = tuple(config.fc_layer_params)
    actor = actor_distribution_network.ActorDistributionNetwork(
        environment.observation_spec(),
        environment.action_spec(),
        fc_layer_params=layers,
        seed=config.seed,
    )
    baseline = None
    if config.use_baseline:
        baseline = value_network.ValueNetwork(
            environment.observation_spec(),
            fc_layer_params=layers,
            seed=config.seed + 1,
        )
    return reinforce_agent.ReinforceAgent(
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


def make_replay_buffer(
    config: cli.Config,
    environment: tf_py_environment.TFPyEnvironment,
    agent: reinforce_agent.ReinforceAgent,
) -> (
    tf_uniform_replay_buffer.TFUniformReplayBuffer
    | reverb_replay_buffer.ReverbReplayBuffer
):
    """The buffer of an iteration's episodes: variables, or a server's queue."""
    if config.replay == "uniform":
        return tf_uniform_replay_buffer.TFUniformReplayBuffer(
            agent.collect_data_spec,
            batch_size=environment.batch_size,
            max_length=config.replay_capacity // environment.batch_size,
            seed=config.seed,
        )
    if config.replay != "service":
        raise ValueError(
            f"replay: expected 'uniform' or 'service', got {config.replay!r}."
        )
    if config.num_envs != 1:
        # The queue would not tell whose the episodes are.
        raise ValueError(
            f"num_envs: expected 1 with replay='service', got {config.num_envs}."
        )
    table = replay_service.Table.queue(
        "episodes",
        max_size=config.replay_capacity,
        signature=tensor_spec.add_outer_dim(agent.collect_data_spec),
    )

    def make_observer(
        client: replay_service.Client,
    ) -> reverb_utils.ReverbAddEpisodeObserver:
        return reverb_utils.ReverbAddEpisodeObserver(
            client, table.name, max_sequence_length=config.replay_capacity
        )

    return reverb_replay_buffer.ReverbReplayBuffer(
        agent.collect_data_spec,
        table.name,
        sequence_length=None,
        local_server=replay_service.Server([table]),
        make_observer=make_observer,
    )


if __name__ == "__main__":
    cli.start(main)
