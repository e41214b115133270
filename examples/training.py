"""Makes the environment of a configuration, and what networks take from it."""

from __future__ import annotations

from typing import Any

from examples import cli
from tfrl import environments, networks


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
