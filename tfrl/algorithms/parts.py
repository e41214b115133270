"""Parts that algorithms share: encoders of observations, normalizers and schedules."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tfrl import agents, environments, networks, utils
from tfrl.algorithms import spaces
from tfrl.algorithms.settings import remedy_for

if TYPE_CHECKING:
    from tfrl.algorithms.algorithm import Algorithm


class NormalizesObservations(Protocol):
    """An algorithm with a setting for the normalization of observations."""

    normalize_observations: bool


def network_arguments(
    s: Algorithm, observation_spec: Any, *, for_critic: bool = False
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
        encoder=s.own_encoder,
        dtype=s.dtype,
    )
    body = (
        {"body": networks.layers.bodies.simba}
        if getattr(s, "encoder", "") == "simba"
        else {}
    )
    return {**activation(s), **encoder, **body}


def check_blocks(s: Algorithm, *names: str) -> None:
    """Raises a ValueError unless SimBa's residual blocks, if any, have one size.

    Args:
      s: The settings.
      *names: The settings of the sizes of the blocks.
    """
    if getattr(s, "encoder", "") != "simba":
        return
    for name in names:
        sizes = getattr(s, name)
        if len(set(sizes)) != 1:
            raise ValueError(
                f"{name}: expected the same number of units for each residual block, "
                "such as (128,) or (512, 512), with encoder='simba', got "
                f"{sizes}; {remedy_for(name)}."
            )


def activation(s: Algorithm) -> dict[str, Any]:
    """Returns the argument for the activation, if the settings choose one."""
    import keras  # Not at the top: --help does not wait for TensorFlow.

    if s.activation == "usual":
        return {}
    return {"activation_fn": keras.activations.get(s.activation)}


def mlp_activation(s: Algorithm) -> str:
    """Returns the activation of a `LayerNormMLP`, whose usual one is ELU."""
    return "elu" if s.activation == "usual" else str(s.activation)


def deterministic_actor(
    s: Any, observation_spec: Any, action_spec: Any
) -> networks.Network:
    """Makes the actor of an algorithm with `fc_layer_params`, which returns actions."""
    return networks.ActorNetwork(
        observation_spec,
        action_spec,
        s.fc_layer_params,
        seed=s.seed,
        **network_arguments(s, observation_spec),
    )


def squashed_projection() -> Any:
    """Returns SAC's head, which makes distributions of squashed actions."""
    return functools.partial(
        agents.sac.TanhNormalProjectionNetwork,
        std_transform=agents.sac.std_clip_transform,
    )


def actor_and_critic(
    s: Algorithm, observation_spec: Any, action_spec: Any, **arguments: Any
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
        conv_layer_params=s.conv_layer_params or None,
        encoder=s.own_encoder,
        **activation(s),
        dtype=s.dtype,
        seed=s.seed,
        **arguments,
    )
    return {"actor_net": actor, "value_net": critic}


def distributional_critic(
    s: Algorithm,
    environment: environments.TFEnvironment,
    fc_layer_params: Sequence[int],
    atoms: tuple[float, float, int],
) -> networks.Network:
    """Makes a critic that predicts the distribution of the return.

    Args:
      s: The settings.
      environment: The environment.
      fc_layer_params: Units of the hidden layers.
      atoms: The smallest and the largest return, and the number of atoms.
    """
    encoder = spaces.observation_network(
        environment.observation_spec(),
        conv_layer_params=s.conv_layer_params or None,
        encoder=s.own_encoder,
        dtype=s.dtype,
        seed=s.seed + 1,
    )
    return networks.Sequential(
        [
            networks.CriticMultiplexer(observation_network=encoder),
            networks.LayerNormMLP(
                fc_layer_params,
                activation=mlp_activation(s),
                activate_final=True,
                dtype=s.dtype,
            ),
            networks.DiscreteValuedHead(*atoms),
        ],
        seed=s.seed + 1,
    )


def observation_normalizer(
    s: NormalizesObservations, observation_spec: Any
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
    """Returns the schedule of a rate; the rate itself if `last` is None."""
    return first if last is None else decay(first, num_updates, last)


def adam(rate: Any, *, weight_decay: float = 0.0, **arguments: Any) -> Any:
    """Returns Adam with a learning rate, which is a number or a schedule.

    With a `weight_decay` that is not 0, it returns AdamW.
    """
    import keras

    rate = float(rate) if _is_variable(rate) else rate
    if weight_decay:
        return keras.optimizers.AdamW(rate, weight_decay=weight_decay, **arguments)
    return keras.optimizers.Adam(rate, **arguments)


def product(value: Any, number: float) -> Any:
    """Returns a setting times a number; a variable if the setting is one."""
    if not _is_variable(value):
        return value * number
    import tensorflow as tf

    return tf.Variable(value * number, trainable=False)


def _is_variable(value: Any) -> bool:
    """Whether a setting is a `tf.Variable`; see `Recipe.use_variables`."""
    return hasattr(value, "assign")
