"""Parts that algorithms share: networks, optimizers, schedules and loops.

The settings that a function reads are those of `mixins`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tfrl import agents, networks, train
from tfrl.algorithms.settings import remedy_for


def network_arguments(
    s: Any, observation_spec: Any = None, *, for_critic: bool = False
) -> dict[str, Any]:
    """Returns the arguments shared by all networks that take observations.

    They define how observations become vectors, and the activation and the precision of
    layers; see `networks.observation_encoder`.

    Args:
      s: The algorithm, with the settings of `mixins.Networks`.
      observation_spec: The spec of the network's input; None for the observations.
      for_critic: Whether the network is a critic of observations and actions.
    """
    encoder = networks.observation_encoder(
        s.observation_spec if observation_spec is None else observation_spec,
        conv_layer_params=s.conv_layer_params or None,
        for_critic=for_critic,
        encoder=s.own_encoder,
        dtype=s.dtype,
    )
    is_simba = getattr(s, "encoder", "") == "simba"
    body = {"body": networks.layers.bodies.simba} if is_simba else {}
    return {**activation(s), **encoder, **body}


def check_returns(vmin: float, vmax: float) -> None:
    """Raises a ValueError unless there are returns between the bounds."""
    if vmin >= vmax:
        raise ValueError(
            f"vmin: expected a number below vmax, {vmax}, got {vmin}; "
            f"{remedy_for('vmin')}, so that all discounted returns lie between."
        )


def activation(s: Any) -> dict[str, Any]:
    """Returns the argument for the activation, if the settings choose one."""
    import keras  # Not at the top: --help does not wait for TensorFlow.

    if s.activation == "usual":
        return {}
    return {"activation_fn": keras.activations.get(s.activation)}


def normed_layers(s: Any) -> networks.Network:
    """Makes the hidden layers of Acme's networks, whose usual activation is ELU."""
    return networks.LayerNormMLP(
        s.fc_layer_params,
        activation="elu" if s.activation == "usual" else s.activation,
        activate_final=True,
        dtype=s.dtype,
    )


def deterministic_actor(s: Any) -> networks.Network:
    """Makes the actor of an algorithm with `fc_layer_params`, which returns actions."""
    return networks.ActorNetwork(
        s.actor_spec,
        s.environment.action_spec(),
        s.fc_layer_params,
        seed=s.seed,
        **network_arguments(s, s.actor_spec),
    )


def stochastic_actor(
    s: Any, fc_layer_params: Sequence[int], **arguments: Any
) -> networks.Network:
    """Makes an actor that returns distributions of actions.

    Args:
      s: The algorithm.
      fc_layer_params: Units of the hidden layers.
      **arguments: Further arguments of `networks.ActorDistributionNetwork`.
    """
    return networks.ActorDistributionNetwork(
        s.actor_spec,
        s.environment.action_spec(),
        fc_layer_params=fc_layer_params,
        seed=s.seed,
        **{**network_arguments(s, s.actor_spec), **arguments},
    )


def value_network(s: Any, offset: int) -> networks.Network:
    """Makes a network of state values with `fc_layer_params`.

    Args:
      s: The algorithm.
      offset: What is added to the algorithm's seed.
    """
    return networks.ValueNetwork(
        s.critic_spec,
        fc_layer_params=s.fc_layer_params,
        seed=s.seed + offset,
        **network_arguments(s, s.critic_spec),
    )


def q_network(s: Any, fc_layer_params: Sequence[int]) -> networks.Network:
    """Makes a critic that predicts the values of all discrete actions.

    Args:
      s: The algorithm.
      fc_layer_params: Units of the hidden layers.
    """
    return networks.QNetwork(
        s.observation_spec,
        s.environment.action_spec(),
        fc_layer_params=fc_layer_params,
        seed=s.seed + 1,
        **network_arguments(s),
    )


def critic(s: Any, **arguments: Any) -> networks.Network:
    """Makes a critic with `fc_layer_params`, which predicts the mean of the return.

    Args:
      s: The algorithm.
      **arguments: Further arguments of `networks.CriticNetwork`.
    """
    return networks.CriticNetwork(
        (s.critic_spec, s.environment.action_spec()),
        joint_fc_layer_params=s.fc_layer_params,
        **{"seed": s.seed + 1, **arguments},
        **network_arguments(s, s.critic_spec, for_critic=True),
    )


def critics(
    s: Any, num_critics: int, fc_layer_params: Sequence[int], **arguments: Any
) -> networks.Network:
    """Makes an ensemble of critics.

    Args:
      s: The algorithm.
      num_critics: Their number.
      fc_layer_params: Units of the hidden layers.
      **arguments: Further arguments of `networks.CriticEnsembleNetwork`.
    """
    return networks.CriticEnsembleNetwork(
        (s.critic_spec, s.environment.action_spec()),
        num_critics=num_critics,
        fc_layer_params=fc_layer_params,
        seed=s.seed + 1,
        **arguments,
        **network_arguments(s, s.critic_spec, for_critic=True),
    )


def squashed_projection() -> Any:
    """Returns SAC's head, which makes distributions of squashed actions."""
    return functools.partial(
        agents.sac.TanhNormalProjectionNetwork,
        std_transform=agents.sac.std_clip_transform,
    )


def on_policy_loop(
    s: Any, agent: agents.TFAgent, steps: int, *arguments: Any, **keywords: Any
) -> train.OnPolicyLoop:
    """Makes the loop of an algorithm that learns from rollouts.

    Args:
      s: The algorithm.
      agent: The agent.
      steps: The steps of each environment in a rollout.
      *arguments: Further arguments of `train.OnPolicyLoop`.
      **keywords: Further arguments by name.

    Raises:
      ValueError: The program gave a replay buffer.
    """
    if s.own_replay_buffer is not None:
        raise ValueError(
            f"replay_buffer: got one, but {s.title} learns from rollouts, without "
            "replay; leave it out."
        )
    return train.OnPolicyLoop(
        s.environment,
        agent,
        *arguments,
        collect_steps_per_iteration=steps,
        seed=s.seed,
        jit_compile="auto" if s.jit_compile else False,
        **keywords,
    )


def schedule(first: Any, num_updates: int, last: Any) -> Any:
    """Returns the schedule of a number that changes linearly over some updates.

    The number itself, if `last` is None.
    """
    import keras  # Not at the top: --help does not wait for TensorFlow.

    if last is None:
        return first
    return keras.optimizers.schedules.PolynomialDecay(first, num_updates, last)


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
