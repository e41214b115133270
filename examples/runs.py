"""Trains the agents of the examples, as their configurations say."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from absl import flags

from examples import cli, training
from tfrl import agents, environments, train
from tfrl import eval as evaluation

# `cli.read_config` reads these two.
flags.DEFINE_integer(
    "num_environment_steps", None, "Length of the run, instead of its iterations."
)
flags.DEFINE_string(
    "initial_run", None, "Folder of a run, to begin with its last weights."
)
_FILM = flags.DEFINE_bool(
    "film", True, "Film the best policy at the end; --nofilm does not."
)
_EVALUATE_UNTRAINED = flags.DEFINE_bool(
    "evaluate_untrained", True, "Evaluate the policy before the first iteration."
)


def run(
    config: cli.Config,
    algorithms: Mapping[str, str],
    make_agent: Callable[[cli.Config, environments.TFEnvironment], agents.TFAgent],
    make_loop: Callable[
        [cli.Config, environments.TFEnvironment, agents.TFAgent], train.TrainingLoop
    ],
) -> None:
    """Builds the environment, the agent and the loop of a configuration, and trains.

    Args:
      config: The configuration, as `cli.read_config` returns it.
      algorithms: The algorithms of the script: the name in `config.agent` and in the
        names of folders, and the name for readers.
      make_agent: Makes the agent from the configuration and the environment.
      make_loop: Makes the loop from these and the agent, which has its weights.

    Raises:
      ValueError: A setting is wrong.
    """
    name = cli.agent_name(config, algorithms)
    cli.prepare(name, config)
    environment = training.make_environment(config)
    with train.device_scope(config.device):
        agent = make_agent(config, environment)
        agent.initialize()
        load_initial_weights(name, config, agent)
    loop = make_loop(config, environment, agent)
    run_loop(config, loop, cli.make_directory(name, config), algorithms[name])


def load_initial_weights(name: str, config: cli.Config, agent: agents.TFAgent) -> None:
    """Loads the weights of `--initial_run`, unless the run has its own checkpoint.

    Args:
      name: The algorithm's name in the names of folders.
      config: The configuration, as `cli.read_config` returns it.
      agent: The agent, after `initialize`.
    """
    initial_run = config.get("initial_run")
    if initial_run is None or cli.has_checkpoint(name, config):
        return
    path = train.load_weights(agent, initial_run)
    print(f"Initial weights: {path}", file=sys.stderr)


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
        **_length(config),
        **settings(config, loop.agent, algorithm, **flag_values()),
    )
    cli.report(run.run(), directory)


def _length(config: cli.Config) -> dict[str, int]:
    """Returns the length of a run, as `train.Run` takes it."""
    steps = config.get("num_environment_steps")
    if steps is None:
        return {"num_iterations": config.num_iterations}
    return {"num_environment_steps": steps}


def flag_values() -> dict[str, bool]:
    """Returns the arguments of `settings` that are flags of the command."""
    return {"films": _FILM.value, "evaluates_untrained": _EVALUATE_UNTRAINED.value}


def settings(
    config: cli.Config,
    agent: agents.TFAgent,
    algorithm: str,
    *,
    films: bool,
    evaluates_untrained: bool,
) -> dict[str, Any]:
    """Returns what `train.Run` is to evaluate, log and save.

    It reads no flags, since a process that another one started has none.
    """
    own = cli.environment_settings(config)
    # All episodes of an evaluation run side by side, from different starts.
    environment = cli.make_environment(config.env, config.num_eval_episodes, 0, **own)
    video_environment = None
    if films:
        video_environment = cli.make_video_environment(config.env, **own)
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
        "video_environment": video_environment,
        "max_untrained_eval_steps": 1000 if evaluates_untrained else 0,
        "title": f"{algorithm} on {config.env}, seed {config.seed}",
    }
