"""Parts that algorithms share: encoders of observations, normalizers and schedules."""

from __future__ import annotations

from typing import Any

from tfrl import environments, networks, utils
from tfrl.algorithms import settings

# The names are Keras's.
ACTIVATIONS = (
    "celu",
    "elu",
    "gelu",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "leaky_relu",
    "linear",
    "log_sigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softsign",
    "squareplus",
    "swish",
    "tanh",
)
check_activation = settings.one_of(*ACTIVATIONS)


def network_arguments(
    s: Any, environment: environments.TFEnvironment, *, for_critic: bool = False
) -> dict[str, Any]:
    """Returns the arguments that all networks of observations have.

    They say how observations become vectors, and in which precision layers compute; see
    `networks.observation_encoder`.

    Args:
      s: The settings.
      environment: The environment.
      for_critic: Whether the network is a critic of observations and actions.
    """
    return networks.observation_encoder(
        environment.observation_spec(),
        conv_layer_params=s.conv_layer_params or None,
        for_critic=for_critic,
        dtype=s.dtype,
    )


def observation_normalizer(
    s: Any, environment: environments.TFEnvironment
) -> utils.tensor_normalizer.TensorNormalizer | None:
    """Makes the normalizer of an agent's observations, if the settings ask for it."""
    if not s.normalize_observations:
        return None
    return utils.tensor_normalizer.StreamingTensorNormalizer(
        environment.observation_spec()
    )


def decay(first: float, num_updates: int, last: float) -> Any:
    """Returns the schedule of a number that changes linearly in so many updates."""
    import keras

    return keras.optimizers.schedules.PolynomialDecay(first, num_updates, last)
