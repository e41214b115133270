"""Makes a configuration's environment, and the agent's arguments that depend on it."""

from __future__ import annotations

from typing import Any

from examples import cli
from tfrl import environments, networks, train


def network_arguments(
    config: cli.Config, environment: environments.TFEnvironment
) -> dict[str, Any]:
    """Returns the arguments that all networks of observations have.

    They say how observations become vectors, and in which precision layers compute. A
    picture that convolutions take stays one; its bytes are scaled to [0, 1].
    """
    if config.get("conv_layer_params"):
        import keras  # Not at the top: --help does not wait for TensorFlow.

        return {
            "preprocessing_layers": keras.layers.Rescaling(1 / 255),
            "conv_layer_params": tuple(config.conv_layer_params),
            "dtype": config.dtype,
        }
    layers, combiner = networks.default_preprocessing(environment.observation_spec())
    return {
        "preprocessing_layers": layers,
        "preprocessing_combiner": combiner,
        "dtype": config.dtype,
    }


def make_environment(config: cli.Config) -> environments.TFEnvironment:
    """Makes the environment to train in.

    Raises:
      ValueError: It is an Atari game, and the networks have no convolutions.
    """
    if not config.get("conv_layer_params"):
        cli.refuse_games(config.env)
    # An environment in TensorFlow is a part of the program on the agent's device.
    is_native = environments.native.bit_flipping.is_task(config.env)
    with train.device_scope(config.device if is_native else ""):
        return cli.make_environment(
            config.env,
            config.get("num_envs", 1),
            config.seed,
            is_training=True,
            **cli.environment_settings(config),
        )


def follow_progress(config: cli.Config, value: float, *, is_annealed: bool) -> Any:
    """Returns a number, or its schedule if it falls linearly to 0 over the run.

    The run is one of rollouts; see `updates_per_rollout`.
    """
    if not is_annealed:
        return value
    import keras

    return keras.optimizers.schedules.PolynomialDecay(
        value, config.num_iterations * updates_per_rollout(config), 0.0
    )


def updates_per_rollout(config: cli.Config) -> int:
    """Returns the number of updates in an iteration that collects a rollout."""
    minibatches = 1
    if config.get("minibatch_size"):
        num_frames = config.collect_steps_per_iteration * config.num_envs
        # The loop refuses minibatches that are larger than a rollout.
        minibatches = max(num_frames // config.minibatch_size, 1)
    return int(config.num_epochs * minibatches)
