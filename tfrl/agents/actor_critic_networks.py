"""Builds the networks of agents with an actor and critics, and their targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tfrl.agents import normalization, observation_embedding, target_networks
from tfrl.networks import network as network_lib
from tfrl.policies import actor_policy
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils.tensor_normalizer import TensorNormalizer


class Networks(NamedTuple):
    """Built networks and their targets.

    Attributes:
      embedding: The observation network, whose output is the input of the other
        networks.
      actor: The actor, a `Network`; None for an agent without one.
      target_actor: The target network of the actor, or None.
      critics: The critics, each with its target, or None.
    """

    embedding: observation_embedding.ObservationEmbedding
    actor: Any
    target_actor: network_lib.Network | None
    critics: Sequence[tuple[network_lib.Network, network_lib.Network | None]]

    def target_pairs(self) -> list[tuple[network_lib.Network, network_lib.Network]]:
        """Returns all networks that have targets, each with its target."""
        pairs = [(self.actor, self.target_actor), *self.critics]
        return [
            *((network, target) for network, target in pairs if target is not None),
            *self.embedding.target_pairs,
        ]

    def policy(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        **kwargs: Any,
    ) -> actor_policy.ActorPolicy:
        """Returns the actor's policy without noise.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: The nest of specs of the actions.
          **kwargs: Further arguments of `ActorPolicy`.
        """
        actor = self.embedding.of_observations(self.actor)
        return actor_policy.ActorPolicy(time_step_spec, action_spec, actor, **kwargs)


def make_networks(
    time_step_spec: ts.TimeStep,
    action_spec: types.NestedTensorSpec,
    actor_network: types.Network | types.Layer,
    critic_networks: Sequence[types.Network | types.Layer | None],
    *,
    target_actor_network: types.Network | types.Layer | None = None,
    without_target_actor: bool = False,
    without_target_critics: bool = False,
    critics_see_actions: bool = True,
    observation_network: types.Network | types.Layer | None = None,
    normalizer: TensorNormalizer | None = None,
) -> Networks:
    """Builds the networks and their targets.

    Args:
      time_step_spec: A `TimeStep` of specs.
      action_spec: The nest of specs of the actions.
      actor_network: A `Network` (or Keras layer) of observations.
      critic_networks: A critic and its target, or two critics and their targets, as
        `target_networks.critics_with_targets` takes them. A target of None is a copy,
        and a second critic of None is a copy with other initial weights.
      target_actor_network: The target of the actor; a copy if None.
      without_target_actor: Whether the actor has no target.
      without_target_critics: Whether the critics have no targets.
      critics_see_actions: Whether the critics are networks of pairs of observations and
        actions, not of observations.
      observation_network: See `ObservationEmbedding`.
      normalizer: Normalizes the observations before the networks get them; None does
        not normalize.

    Raises:
      ValueError: A network does not fit the specs, or shares weights with its target.
    """
    embedding = observation_embedding.ObservationEmbedding(
        observation_network, time_step_spec.observation, normalizer
    )
    seen = embedding.spec
    actor, target_actor = normalization.normalized_networks(
        embedding.normalizer, seen, actor_network, target_actor_network
    )
    if without_target_actor:
        actor = network_lib.as_network(actor, seen)
        actor.create_variables(seen)
    else:
        actor, target_actor = target_networks.with_target(
            actor, target_actor, "TargetActorNetwork", seen
        )
    if critics_see_actions:
        input_spec: Any = (seen, action_spec)
        wrap: Any = normalization.normalized_critics
    else:
        input_spec, wrap = seen, normalization.normalized_networks
    wrapped = wrap(embedding.normalizer, input_spec, *critic_networks)
    if len(wrapped) == 2:
        critic, target = wrapped
        name = "TargetCriticNetwork"
        critics = [target_networks.with_target(critic, target, name, input_spec)]
    else:
        first, second, target, target_2 = wrapped
        build = (
            target_networks.critics_with_targets
            if critics_see_actions
            else target_networks.twin_critics
        )
        critics = build(first, second, target, target_2, input_spec)
    pairs: list[Any] = list(critics)
    if without_target_critics:
        pairs = [(critic, None) for critic, _ in critics]
    return Networks(embedding, actor, target_actor, pairs)
