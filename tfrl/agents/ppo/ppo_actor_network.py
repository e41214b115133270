"""`PPOActorNetwork` makes TF-Agents' actor of dense layers for continuous actions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfrl.networks import network, normal_projection_network, sequential
from tfrl.networks.construction import seeding
from tfrl.utils import actions

if TYPE_CHECKING:
    from tfrl.typing import types

# The first standard deviation of the actions.
_INITIAL_STDDEV = 0.35


def tanh_and_scale_to_spec(
    inputs: tf.Tensor, spec: types.BoundedTensorSpec
) -> tf.Tensor:
    """Returns `inputs`, `[..., *spec.shape]`, squashed into the bounds of `spec`."""
    means, magnitudes = actions.spec_means_and_magnitudes(spec)
    return means + magnitudes * tf.tanh(inputs)


class PPOActorNetwork:
    """Makes actors of tanh layers with orthogonal kernels, for continuous actions.

    `ppo_networks.create_networks` makes an actor and a critic for any action, with the
    initialisation that published scores assume.
    """

    def __init__(self, seed_stream_class: Any = None):
        """Stores the class of the stream of seeds.

        Args:
          seed_stream_class: A class like `tfp.util.SeedStream` that draws the seeds of
            the layers; by default this package's `SeedStream`.
        """
        self.seed_stream_class = seed_stream_class

    def create_sequential_actor_net(
        self,
        fc_layer_units: Sequence[int],
        action_tensor_spec: types.BoundedTensorSpec,
        seed: int | None = None,
    ) -> sequential.Sequential:
        """Makes a network from observations `[B(, T), n]` to normal distributions.

        The means are squashed into the bounds of the spec. The standard deviations do
        not depend on the observation, and are 0.35 at first.

        Args:
          fc_layer_units: The units of each dense layer.
          action_tensor_spec: The bounded float spec of the actions.
          seed: Seeds all initialisers; None follows `tf.random.set_seed`.

        Raises:
          ValueError: If `action_tensor_spec` is not one spec of floats.
        """
        seeds = seeding.stream_of(self.seed_stream_class, seed, "ppo_actor_network")
        layers = [
            keras.layers.Dense(
                units,
                activation="tanh",
                kernel_initializer=keras.initializers.Orthogonal(seed=seeds()),
            )
            for units in fc_layer_units
        ]
        return sequential.Sequential(
            [*layers, _NormalHead(action_tensor_spec, seed=seeds())]
        )


class _NormalHead(network.DistributionNetwork):
    """Maps hidden states `[B(, T), n]` to normal distributions of actions."""

    def __init__(self, action_tensor_spec: Any, seed: int | None = None):
        projection = normal_projection_network.NormalProjectionNetwork(
            action_tensor_spec,
            init_means_output_factor=0.1,
            std_bias_initializer_value=math.log(math.expm1(_INITIAL_STDDEV)),
            seed=seed,
        )
        super().__init__(None, (), projection.output_spec, name="NormalHead")
        self._projection = projection

    def call(self, inputs: tf.Tensor) -> tuple[Any, tuple[()]]:
        outer_rank = inputs.shape.rank - 1
        result: tuple[Any, tuple[()]] = self._projection(inputs, outer_rank)
        return result
