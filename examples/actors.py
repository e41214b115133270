"""Trains the agents of the examples with actors in processes of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from absl import flags

from examples import checks, cli, runs
from tfrl import agents, distribute, environments, replay_service

NUM_ACTORS = flags.DEFINE_integer(
    "num_actors",
    0,
    "Actors in processes of their own; 0 trains in one process.",
    lower_bound=0,
)


def train_with_actors(
    config: cli.Config,
    algorithm: str,
    make_agent: Callable[[environments.TFEnvironment], agents.TFAgent],
    make_table: Callable[[str, Any], replay_service.Table],
    **settings: int,
) -> None:
    """Trains for `config.num_iterations` updates, in `logs/ALGORITHM_actors_...`.

    Args:
      config: The configuration. The numbers of iterations in it count updates.
      algorithm: The name of the algorithm.
      make_agent: See `distribute.Experiment`.
      make_table: See there.
      **settings: Further arguments of `distribute.Experiment`.

    Raises:
      ValueError: The configuration has a length in environment steps, or an initial
        run.
    """
    cli.refuse_environment_steps(config)
    cli.refuse_initial_run(config)
    name = f"{algorithm}_actors"
    cli.prepare(name, config)
    cli.refuse_games(config.env)
    directory = cli.make_directory(name, config)
    flag_values = runs.flag_values()
    experiment = distribute.Experiment(
        lambda seed: cli.make_environment(config.env, config.num_envs, seed),
        make_agent,
        make_table,
        batch_size=config.batch_size,
        make_run_settings=lambda agent: runs.settings(
            config, agent, algorithm.upper(), **flag_values
        ),
        jit_compile=config.jit_compile,
        seed=config.seed,
        **settings,
    )
    result = distribute.run_distributed(
        experiment, directory, NUM_ACTORS.value, config.num_iterations
    )
    if result is None:  # Stopped before the learner had begun.
        sys.exit(130)
    cli.report(result, directory)


def train_from_replay(
    config: cli.Config,
    algorithm: str,
    make_agent: Callable[[environments.TFEnvironment], agents.TFAgent],
) -> None:
    """Trains an agent that learns from uniform replay; see `train_with_actors`.

    Actors and learner wait for each other, so that there are as many updates for each
    step as in one process. The actors follow the policy from the first step on.

    Raises:
      ValueError: The configuration asks for prioritized replay, or for more first
        steps than the buffer holds.
    """
    if config.replay != "uniform":
        raise ValueError(
            f"replay: got {config.replay!r} with --num_actors, expected 'uniform'; "
            "leave one of them out."
        )
    checks.check_at_most(config, "initial_collect_steps", "replay_capacity")
    steps = config.collect_steps_per_iteration * config.num_envs
    samples_per_insert = config.batch_size * config.train_steps_per_iteration / steps
    min_size = config.initial_collect_steps

    def make_table(name: str, signature: Any) -> replay_service.Table:
        return replay_service.Table(
            name,
            sampler=replay_service.selectors.Uniform(),
            remover=replay_service.selectors.Fifo(),
            max_size=config.replay_capacity,
            rate_limiter=replay_service.rate_limiters.SampleToInsertRatio(
                samples_per_insert,
                min_size,
                # Batches are drawn, and items sent, ahead of their use.
                error_buffer=max(
                    4 * config.batch_size,
                    samples_per_insert,
                    0.5 * samples_per_insert * min_size,
                ),
            ),
            signature=signature,
        )

    train_with_actors(
        config,
        algorithm,
        make_agent,
        make_table,
        sequence_length=config.n_step_update + 1,
        stride_length=1,
        push_period=10,
        pull_period=10,
    )
