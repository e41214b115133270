"""Makes and runs the loops of the examples that learn continuous actions from replay.

The configurations have the same fields for replay, the loop and its outputs.
"""

from __future__ import annotations

from examples import cli
from tfrl import agents, environments, replay_buffers, train
from tfrl import eval as evaluation


def make_replay_buffer(
    config: cli.Config,
    environment: environments.TFPyEnvironment,
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
            "--replay, or edit the configuration file."
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
    environment: environments.TFPyEnvironment,
    agent: agents.TFAgent,
    replay_buffer: replay_buffers.ReplayBuffer,
) -> train.OffPolicyLoop:
    """Makes the loop."""
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


def run_loop(
    config: cli.Config,
    loop: train.OffPolicyLoop | train.OfflineLoop,
    directory: train.RunDirectory,
    algorithm: str,
) -> None:
    """Trains to the end; evaluates, logs and saves during training."""
    # All episodes of an evaluation run side by side, from different starts.
    environment = cli.make_environment(config.env, config.num_eval_episodes, 0)
    evaluator = evaluation.Evaluator(
        environment, loop.agent.policy, config.num_eval_episodes, seed=config.seed
    )

    def evaluate_policy(iteration: int) -> evaluation.EvaluationResult:
        environment.seed(10_000_000 + 1_000 * iteration)
        return evaluator.run()

    run = train.Run(
        loop,
        directory,
        num_iterations=config.num_iterations,
        evaluate=evaluate_policy,
        eval_interval=config.eval_interval,
        log_interval=config.log_interval,
        checkpoint_interval=config.checkpoint_interval,
        video_environment=cli.make_video_environment(config.env),
        title=f"{algorithm} on {config.env}, seed {config.seed}",
    )
    cli.report(run.run(), directory)
