"""Makes experiments of the algorithms: actors, replay servers and a learner.

A process on another host makes its experiment from the fields of a configuration, which
are valid in JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_collections

from tfrl import distribute, environments, replay_service
from tfrl.algorithms import algorithm as algorithm_lib
from tfrl.algorithms import off_policy, registry, run_settings, worlds
from tfrl.algorithms.settings import ABOVE_0, SIZE, Settings, field

# The names in `agent` of a configuration with actors.
ALGORITHMS = ("dqn", "r2d2", "sac", "ppo", "impala")


class ActorSettings(Settings):
    """The additional settings of runs with actors and replay servers."""

    samples_per_insert: float = field(32.0, "How often each item is sampled.", ABOVE_0)
    push_period: int = field(1, "Updates between pushes of the weights.", SIZE)
    pull_period: int = field(1, "Steps of an actor between pulls.", SIZE)
    sequence_length: int = field(1, "Steps in a sequence.", SIZE)
    stride_length: int = field(1, "Steps from one sequence to the next.", SIZE)
    max_queue_size: int = field(16, "Sequences that wait for an update.", SIZE)


def make_experiment(config: Any, **flag_values: bool) -> distribute.Experiment:
    """Makes the experiment of a configuration.

    Args:
      config: The fields of the configuration, valid in JSON.
      **flag_values: Arguments of `run_settings.make` other than the algorithm's parts.

    Raises:
      ValueError: The configuration names another agent, or a setting is wrong.
    """
    config = ml_collections.ConfigDict(config)
    if config.agent not in ALGORITHMS:
        raise ValueError(
            f"agent: got {config.agent!r}, expected one of "
            f"{', '.join(map(repr, ALGORITHMS))}; set --config.agent."
        )
    periods = {"push_period": config.push_period, "pull_period": config.pull_period}
    if config.agent in ("dqn", "r2d2", "sac"):
        return of_replay(config, config.samples_per_insert, **flag_values, **periods)
    return of_queue(config, **flag_values, **periods)


def of_queue(config: Any, **settings: Any) -> distribute.Experiment:
    """Makes an experiment whose learner takes each sequence once.

    Args:
      config: The configuration.
      **settings: Arguments of `run_settings.make` other than the algorithm's parts, and
        further arguments of `distribute.Experiment`.
    """

    def make_table(name: str, signature: Any) -> replay_service.Table:
        return replay_service.Table.queue(
            name, config.max_queue_size, signature=signature
        )

    arguments: dict[str, Any] = {
        # The agent's `train` takes rollouts and does the epochs itself.
        "ppo": {
            "compute_value_and_advantage_in_train": True,
            "num_epochs": config.get("num_epochs"),
        },
        # Old weights are those that an actor has pulled.
        "impala": {"collect_update_period": 1},
    }
    return _make(
        config,
        arguments[config.agent],
        make_table,
        # The last frame of a sequence has the last observation, as the next one's
        # first frame.
        sequence_length=config.sequence_length + 1,
        stride_length=config.sequence_length,
        **settings,
    )


def of_replay(
    config: Any, samples_per_insert: float, **settings: Any
) -> distribute.Experiment:
    """Makes an experiment whose learner samples uniform or prioritized replay.

    Actors and learner wait for each other, so that there are as many updates for each
    step as in one process. The actors follow the policy from the first step on.

    Args:
      config: See `of_queue`.
      samples_per_insert: How often each transition, or sequence, is sampled on
        average.
      **settings: See `of_queue`.

    Raises:
      ValueError: The configuration has another kind of replay, or more initial steps
        than the buffer holds.
    """
    is_prioritized = config.replay == "prioritized"
    if not is_prioritized and config.replay != "uniform":
        raise ValueError(
            f"replay: got {config.replay!r} with actors, expected 'uniform' or "
            "'prioritized'; set --config.replay."
        )
    min_size = config.initial_collect_steps
    if min_size > config.replay_capacity:
        raise ValueError(
            f"initial_collect_steps: expected at most replay_capacity, "
            f"{config.replay_capacity}, got {min_size}; lower "
            "--config.initial_collect_steps, or raise --config.replay_capacity."
        )

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

    s = _settings_of(config)
    return _make(
        config,
        {},
        make_table,
        sequence_length=off_policy.sequence_length(s) or config.n_step_update + 1,
        stride_length=config.get("stride_length", 1),
        importance_exponent=config.importance_exponent if is_prioritized else None,
        priority_fn=off_policy.priority_fn(s),
        **settings,
    )


def _settings_of(config: Any) -> Any:
    """Returns the settings of the algorithm itself, without the actors' settings."""
    values = dict(config.items())
    # A learner takes whole batches.
    values.setdefault("minibatch_size", 0)
    return registry.find(config.agent).Settings.of(values)


def _make(
    config: Any,
    agent_arguments: Mapping[str, Any],
    make_table: Callable[[str, Any], replay_service.Table],
    *,
    films: bool,
    evaluates_untrained: bool,
    shows_progress: bool = True,
    reports: bool = True,
    continue_stopped: bool = False,
    **settings: Any,
) -> distribute.Experiment:
    kind: type[algorithm_lib.Algorithm] = registry.find(config.agent)
    s = _settings_of(config)

    def make_agent(environment: environments.TFEnvironment) -> Any:
        made = kind(
            environment,
            settings=s,
            agent_arguments=agent_arguments,
            environment_name=config.env,
        )
        return made.make_agent()

    return distribute.Experiment(
        lambda seed: worlds.make_environment(
            config.env,
            config.num_envs,
            seed,
            fit=registry.algorithm_of(config).world.fit,
        ),
        make_agent,
        make_table,
        batch_size=config.batch_size,
        make_run_settings=lambda agent: run_settings.make(
            registry.algorithm_of(config).world,
            s,
            agent,
            kind.title,
            films=films,
            evaluates_untrained=evaluates_untrained,
            shows_progress=shows_progress,
            reports=reports,
            continue_stopped=continue_stopped,
        ),
        jit_compile=config.jit_compile,
        seed=config.seed,
        device=config.device,
        **settings,
    )
