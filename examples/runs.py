"""Runs the loops of the examples, whose configurations say what to evaluate and log."""

from __future__ import annotations

from typing import Any

from examples import cli
from tfrl import agents, train
from tfrl import eval as evaluation


def run_loop(
    config: cli.Config,
    loop: train.TrainingLoop,
    directory: train.RunDirectory,
    algorithm: str,
) -> None:
    """Trains to the end; evaluates, logs and saves during training."""
    run = train.Run(
        loop,
        directory,
        num_iterations=config.num_iterations,
        **settings(config, loop.agent, algorithm),
    )
    cli.report(run.run(), directory)


def settings(
    config: cli.Config, agent: agents.TFAgent, algorithm: str
) -> dict[str, Any]:
    """Returns what `train.Run` is to evaluate, log and save."""
    bins = config.get("num_action_bins", 0)
    # All episodes of an evaluation run side by side, from different starts.
    environment = cli.make_environment(config.env, config.num_eval_episodes, 0, bins)
    evaluator = evaluation.Evaluator(
        environment, agent.policy, config.num_eval_episodes, seed=config.seed
    )

    def evaluate_policy(iteration: int) -> evaluation.EvaluationResult:
        environment.seed(10_000_000 + 1_000 * iteration)
        return evaluator.run()

    return {
        "evaluate": evaluate_policy,
        "eval_interval": config.eval_interval,
        "log_interval": config.log_interval,
        "checkpoint_interval": config.checkpoint_interval,
        "video_environment": cli.make_video_environment(config.env, bins),
        "title": f"{algorithm} on {config.env}, seed {config.seed}",
    }
