"""The `main` that the training scripts share; each gives it its agent and its loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from examples import cli, runs
from tfrl import agents, environments, networks, train


def run(
    config: cli.Config,
    algorithms: Mapping[str, str],
    make_agent: Callable[[cli.Config, environments.TFPyEnvironment], agents.TFAgent],
    make_loop: Callable[
        [cli.Config, environments.TFPyEnvironment, agents.TFAgent], train.TrainingLoop
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
    environment = make_environment(config)
    with train.device_scope(config.device):
        agent = make_agent(config, environment)
        agent.initialize()
    loop = make_loop(config, environment, agent)
    runs.run_loop(config, loop, cli.make_directory(name, config), algorithms[name])


def network_arguments(
    config: cli.Config, environment: environments.TFEnvironment
) -> dict[str, Any]:
    """Returns the arguments that all networks of observations have.

    They say how observations become vectors, and in which precision layers compute.
    """
    layers, combiner = networks.default_preprocessing(environment.observation_spec())
    return {
        "preprocessing_layers": layers,
        "preprocessing_combiner": combiner,
        "dtype": config.dtype,
    }


def make_environment(config: cli.Config) -> environments.TFPyEnvironment:
    """Makes the environment to train in.

    Raises:
      ValueError: It is an Atari game, and the networks have no convolutions.
    """
    if not config.get("conv_layer_params"):
        cli.refuse_games(config.env)
    return cli.make_environment(
        config.env,
        config.get("num_envs", 1),
        config.seed,
        config.get("num_action_bins", 0),
        is_training=True,
    )
