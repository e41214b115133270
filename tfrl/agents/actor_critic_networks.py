"""Builds the networks of agents with one actor and one critic, and their targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tfrl.agents import normalization, observation_embedding, target_networks
from tfrl.policies import actor_policy
from tfrl.trajectories import time_step as ts

if TYPE_CHECKING:
    from tfrl.typing import types
    from tfrl.utils.tensor_normalizer import TensorNormalizer


class Networks(NamedTuple):
    """Built networks and their targets.

    Attributes:
      embedding: What the other networks see of the observations.
      actor: The actor and its target.
      critic: The critic and its target.
    """

    embedding: observation_embedding.ObservationEmbedding
    actor: tuple[Any, Any]
    critic: tuple[Any, Any]

    def policy(
        self, time_step_spec: ts.TimeStep, action_spec: Any, **kwargs: Any
    ) -> actor_policy.ActorPolicy:
        """Returns the actor's policy without noise.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: The nest of specs of the actions.
          **kwargs: Further arguments of `ActorPolicy`.
        """
        actor = self.embedding.of_observations(self.actor[0])
        return actor_policy.ActorPolicy(time_step_spec, action_spec, actor, **kwargs)


def make_networks(
    time_step_spec: ts.TimeStep,
    action_spec: types.NestedTensorSpec,
    actor_network: types.Network | types.Layer,
    critic_network: types.Network | types.Layer,
    target_actor_network: types.Network | types.Layer | None,
    target_critic_network: types.Network | types.Layer | None,
    observation_network: types.Network | types.Layer | None,
    observation_normalizer: TensorNormalizer | None,
) -> Networks:
    """Builds the networks and their targets; see `DdpgAgent` for the arguments.

    Raises:
      ValueError: A network does not fit the specs, or shares weights with its target.
    """
    embedding = observation_embedding.ObservationEmbedding(
        observation_network, time_step_spec.observation, observation_normalizer
    )
    input_spec = (embedding.spec, action_spec)
    actor, target_actor = normalization.normalized_networks(
        embedding.normalizer, embedding.spec, actor_network, target_actor_network
    )
    critic, target_critic = normalization.normalized_critics(
        embedding.normalizer, input_spec, critic_network, target_critic_network
    )
    return Networks(
        embedding,
        target_networks.with_target(
            actor, target_actor, "TargetActorNetwork", embedding.spec
        ),
        target_networks.with_target(
            critic, target_critic, "TargetCriticNetwork", input_spec
        ),
    )
