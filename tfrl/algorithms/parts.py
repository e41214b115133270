"""Parts that algorithms share: encoders of observations, normalizers and schedules."""

from __future__ import annotations

from typing import Any

from tfrl import agents, networks, utils


def network_arguments(
    s: Any, observation_spec: Any, *, for_critic: bool = False
) -> dict[str, Any]:
    """Returns the arguments shared by all networks that take observations.

    They define how observations become vectors, and the activation and the precision of
    layers; see `networks.observation_encoder`.

    Args:
      s: The settings.
      observation_spec: The spec of the network's input.
      for_critic: Whether the network is a critic of observations and actions.
    """
    encoder = networks.observation_encoder(
        observation_spec,
        conv_layer_params=s.conv_layer_params or None,
        for_critic=for_critic,
        dtype=s.dtype,
    )
    return {**_activation(s), **encoder}


def _activation(s: Any) -> dict[str, Any]:
    """Returns the argument for the activation, if the settings choose one."""
    import keras  # Not at the top: --help does not wait for TensorFlow.

    if s.activation == "usual":
        return {}
    return {"activation_fn": keras.activations.get(s.activation)}


def mlp_activation(s: Any) -> str:
    """Returns the activation of a `LayerNormMLP`, whose usual one is ELU."""
    return "elu" if s.activation == "usual" else str(s.activation)


def actor_and_critic(
    s: Any, observation_spec: Any, action_spec: Any, **arguments: Any
) -> dict[str, Any]:
    """Makes the networks of A2C, PPO or IMPALA, a dict by the agent's arguments.

    Args:
      s: The settings.
      observation_spec: The spec of the observations.
      action_spec: The spec of the actions.
      **arguments: Further arguments of `ppo_networks.create_networks`.
    """
    actor, critic = agents.ppo.ppo_networks.create_networks(
        observation_spec,
        action_spec,
        fc_layer_params=s.fc_layer_params,
        conv_layer_params=s.conv_layer_params or None,
        **_activation(s),
        share_layers=s.share_layers,
        dtype=s.dtype,
        seed=s.seed,
        **arguments,
    )
    return {"actor_net": actor, "value_net": critic}


def observation_normalizer(
    s: Any, observation_spec: Any
) -> utils.tensor_normalizer.TensorNormalizer | None:
    """Makes the normalizer of an agent's observations, if the settings have one."""
    if not s.normalize_observations:
        return None
    return utils.tensor_normalizer.StreamingTensorNormalizer(observation_spec)


def decay(first: Any, num_updates: int, last: Any) -> Any:
    """Returns the schedule of a number that changes linearly over some updates."""
    import keras

    return keras.optimizers.schedules.PolynomialDecay(first, num_updates, last)


def rate(first: Any, num_updates: int, last: Any) -> Any:
    """Returns the schedule of a rate, or the number if it cannot change.

    A sweep sets a number for each run.
    """
    if not (_is_variable(first) or _is_variable(last)) and first == last:
        return first
    return decay(first, num_updates, last)


def adam(rate: Any, **arguments: Any) -> Any:
    """Returns Adam with a learning rate, which is a number or a schedule."""
    import keras

    return keras.optimizers.Adam(
        float(rate) if _is_variable(rate) else rate, **arguments
    )


def product(value: Any, number: float) -> Any:
    """Returns a setting times a number; a variable if the setting is one."""
    if not _is_variable(value):
        return value * number
    import tensorflow as tf

    return tf.Variable(value * number, trainable=False)


def _is_variable(value: Any) -> bool:
    """Whether a setting is a `tf.Variable`; see `Settings.with_variables`."""
    return hasattr(value, "assign")
