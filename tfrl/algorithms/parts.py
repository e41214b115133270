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
    s: Any, environment: environments.TFEnvironment
) -> dict[str, Any]:
    """Returns the arguments that all networks of observations have.

    They say how observations become vectors, and in which precision layers compute. A
    picture that convolutions take stays one; its bytes are scaled to [0, 1].
    """
    if getattr(s, "conv_layer_params", ()):
        import keras  # Not at the top: --help does not wait for TensorFlow.

        return {
            "preprocessing_layers": keras.layers.Rescaling(1 / 255),
            "conv_layer_params": s.conv_layer_params,
            "dtype": s.dtype,
        }
    layers, combiner = networks.default_preprocessing(environment.observation_spec())
    return {
        "preprocessing_layers": layers,
        "preprocessing_combiner": combiner,
        "dtype": s.dtype,
    }


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
