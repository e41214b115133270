"""Makes the experiments of train_distributed.py and of the scripts with --num_actors.

It defines no flags: processes on other hosts import it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from examples import checks, cli, dqn, impala, off_policy, ppo, runs, sac
from tfrl import agents, distribute, environments, replay_service

ALGORITHMS = {
    "dqn": "DQN",
    "r2d2": "R2D2",
    "sac": "SAC",
    "ppo": "PPO",
    "impala": "IMPALA",
}

_MakeAgent = Callable[[environments.TFEnvironment], agents.TFAgent]
_MakeTable = Callable[[str, Any], replay_service.Table]


def make_experiment(
    config: Mapping[str, Any], **flag_values: bool
) -> distribute.Experiment:
    """Makes the experiment of a configuration, such as configs/distributed_dqn.py.

    Args:
      config: The fields of the configuration, valid in JSON.
      **flag_values: See `runs.flag_values`.

    Raises:
      ValueError: The configuration names another agent, or a setting is wrong.
    """
    config = cli.Config(config)
    agent = cli.agent_name(config, ALGORITHMS)
    periods = {"push_period": config.push_period, "pull_period": config.pull_period}
    if agent in ("dqn", "r2d2", "sac"):
        make = sac.make_agent if agent == "sac" else dqn.make_agent
        return of_replay(
            config,
            ALGORITHMS[agent],
            lambda environment: make(config, environment),
            config.samples_per_insert,
            **flag_values,
            **periods,
        )
    return of_queue(
        config,
        ALGORITHMS[agent],
        lambda environment: (
            # Old weights are those that an actor has pulled.
            impala.make_agent(config, environment, collect_update_period=1)
            if agent == "impala"
            else ppo.make_agent(config, environment, trains_on_rollouts=True)
        ),
        **flag_values,
        **periods,
    )


def of_queue(
    config: cli.Config, algorithm: str, make_agent: _MakeAgent, **settings: Any
) -> distribute.Experiment:
    """Makes an experiment whose learner takes each sequence once.

    Args:
      config: The configuration.
      algorithm: The name of the algorithm for readers.
      make_agent: See `distribute.Experiment`.
      **settings: The values of flags (see `runs.flag_values`), and further arguments of
        `distribute.Experiment`.
    """

    def make_table(name: str, signature: Any) -> replay_service.Table:
        return replay_service.Table.queue(
            name, config.max_queue_size, signature=signature
        )

    return _make(
        config,
        algorithm,
        make_agent,
        make_table,
        # The last frame of a sequence has the last observation, as the next one's
        # first frame.
        sequence_length=config.sequence_length + 1,
        stride_length=config.sequence_length,
        **settings,
    )


def of_replay(
    config: cli.Config,
    algorithm: str,
    make_agent: _MakeAgent,
    samples_per_insert: float,
    **settings: Any,
) -> distribute.Experiment:
    """Makes an experiment whose learner samples uniform or prioritized replay.

    Actors and learner wait for each other, so that there are as many updates for each
    step as in one process. The actors follow the policy from the first step on.

    Args:
      config: See `of_queue`.
      algorithm: See there.
      make_agent: See there.
      samples_per_insert: How often each transition, or sequence, is sampled on
        average.
      **settings: See there.

    Raises:
      ValueError: The configuration asks for another kind of replay, or for more first
        steps than the buffer holds.
    """
    is_prioritized = config.replay == "prioritized"
    if not is_prioritized and config.replay != "uniform":
        raise ValueError(
            f"replay: got {config.replay!r} with actors, expected 'uniform' or "
            "'prioritized'; set --config.replay."
        )
    checks.check_at_most(config, "initial_collect_steps", "replay_capacity")
    min_size = config.initial_collect_steps

    def make_table(name: str, signature: Any) -> replay_service.Table:
        return replay_service.Table(
            name,
            sampler=replay_service.selectors.Prioritized(config.priority_exponent)
            if is_prioritized
            else replay_service.selectors.Uniform(),
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

    return _make(
        config,
        algorithm,
        make_agent,
        make_table,
        sequence_length=off_policy.sequence_length(config) or config.n_step_update + 1,
        stride_length=config.get("stride_length", 1),
        importance_exponent=config.importance_exponent if is_prioritized else None,
        priority_fn=off_policy.priority_fn(config),
        **settings,
    )


def _make(
    config: cli.Config,
    algorithm: str,
    make_agent: _MakeAgent,
    make_table: _MakeTable,
    *,
    films: bool,
    evaluates_untrained: bool,
    **settings: Any,
) -> distribute.Experiment:
    return distribute.Experiment(
        lambda seed: cli.make_environment(config.env, config.num_envs, seed),
        make_agent,
        make_table,
        batch_size=config.batch_size,
        make_run_settings=lambda agent: runs.settings(
            config,
            agent,
            algorithm,
            films=films,
            evaluates_untrained=evaluates_untrained,
        ),
        jit_compile=config.jit_compile,
        seed=config.seed,
        device=config.device,
        **settings,
    )
