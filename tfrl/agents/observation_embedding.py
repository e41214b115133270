"""ObservationEmbedding: the network of observations that an agent's networks share.

If observations are images, sharing one network halves the computation of actor and
critic, and the actor gets features that the critic has learned. Actor and critic take
the output of this network, the embedding, as the observation.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.agents import normalization, target_networks
from tfrl.networks import network as network_lib
from tfrl.networks import sequential, utils
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import nest_utils
from tfrl.utils.tensor_normalizer import TensorNormalizer


class ObservationEmbedding(tf.Module):
    """An observation network and its target, or nothing at all.

    The critics' loss alone trains the network, which embeds the observations for the
    critics' predictions. The target network embeds the observations for everything
    else, without gradient: for the targets, the actor's loss and the policies.

    Attributes:
      spec: The nest of specs of the embedding, which the actor and the critics take;
        without a network, the specs of the observations.
      normalizer: The normalizer for the inputs of the actor and the critics. None if
        there is an observation network, because that network gets normalized
        observations.
      networks: The network that the critics' loss trains; empty without one.
      target_pairs: The pair of the network and its target; empty without one.
    """

    def __init__(
        self,
        network: types.Network | types.Layer | None,
        observation_spec: types.NestedTensorSpec,
        normalizer: TensorNormalizer | None = None,
    ) -> None:
        """Makes the target network.

        Args:
          network: A `Network` (or Keras layer) without state that maps observations
            `[B, ...]` to a nest of tensors `[B, ...]`; None leaves the observations as
            they are.
          observation_spec: The nest of specs of the observations.
          normalizer: Normalizes the observations before the networks get them; None
            does not normalize.

        Raises:
          ValueError: The network has a state, or its output is not a nest of tensors.
        """
        super().__init__()
        self.spec = observation_spec
        self.normalizer = normalizer
        self.networks: list[network_lib.Network] = []
        self.target_pairs: list[tuple[network_lib.Network, network_lib.Network]] = []
        if network is None:
            return
        (network,) = normalization.normalized_networks(
            normalizer, observation_spec, network
        )
        pair = target_networks.with_target(
            network, None, "TargetObservationNetwork", observation_spec
        )
        self.spec = _checked_spec(pair[0])
        self.normalizer = None
        self.networks = [pair[0]]
        self.target_pairs = [pair]
        self._observation_spec = tensor_spec.from_spec(observation_spec)

    @property
    def losses(self) -> list[tf.Tensor]:
        """The regularisation losses of the network's last call."""
        return [loss for network in self.networks for loss in network.losses]

    def trained(self, time_step: ts.TimeStep, training: bool) -> ts.TimeStep:
        """Returns the time steps `[B(, T)]` with embeddings that have a gradient."""
        if not self.networks:
            return time_step
        return self._embed(self.networks[0], time_step, training)

    def target(self, time_step: ts.TimeStep) -> ts.TimeStep:
        """Returns the time steps `[B(, T)]` with the target network's embeddings."""
        if not self.target_pairs:
            return time_step
        embedded = self._embed(self.target_pairs[0][1], time_step, training=False)
        return embedded._replace(
            observation=tf.nest.map_structure(tf.stop_gradient, embedded.observation)
        )

    def of_observations(self, network: network_lib.Network) -> network_lib.Network:
        """Turns a network of embeddings into a network of observations, for policies.

        The result shares weights with `network` and with the target of the observation
        network.
        """
        if not self.target_pairs:
            return network
        return sequential.Sequential(
            [self.target_pairs[0][1], network],
            input_spec=self._observation_spec,
            name=network.name,
        )

    def _embed(
        self, network: network_lib.Network, time_step: ts.TimeStep, training: bool
    ) -> ts.TimeStep:
        squash = utils.BatchSquash(
            nest_utils.get_outer_rank(time_step.observation, self._observation_spec)
        )
        flat = tf.nest.map_structure(squash.flatten, time_step.observation)
        embedding, _ = network(flat, training=training)
        return time_step._replace(
            observation=tf.nest.map_structure(squash.unflatten, embedding)
        )


def _checked_spec(network: network_lib.Network) -> Any:
    if tf.nest.flatten(network.state_spec):
        raise ValueError(
            f"observation_network {network.name!r}: expected a network without state, "
            f"got state_spec {network.state_spec}; put the recurrent layers into the "
            "actor and the critic."
        )
    spec = network.create_variables()
    if not all(isinstance(s, tf.TensorSpec) for s in tf.nest.flatten(spec)):
        raise ValueError(
            f"observation_network {network.name!r}: expected tensors as output, got "
            f"{spec}; put the head that makes distributions into the other networks."
        )
    return spec
