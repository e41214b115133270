"""Networks of global features and features of arms, with a reward for each arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.bandits.networks import network_outputs
from tfrl.networks import encoding_network, network, q_network
from tfrl.networks.construction import seeding
from tfrl.specs import tensor_spec
from tfrl.specs.bandit_spec_utils import GLOBAL_FEATURE_KEY, PER_ARM_FEATURE_KEY


def create_feed_forward_common_tower_network(
    observation_spec: Any,
    global_layers: Sequence[int],
    arm_layers: Sequence[int],
    common_layers: Sequence[int],
    output_dim: int = 1,
    global_preprocessing_combiner: Any = None,
    arm_preprocessing_combiner: Any = None,
    activation_fn: Any = keras.activations.relu,
    final_activation_fn_for_q_network: Any = None,
    name: str | None = None,
    *,
    seed: int | None = None,
) -> network.Network:
    """Returns a network whose last layers see global and arm features together.

    Args:
      observation_spec: See `bandit_spec_utils.create_per_arm_observation_spec`.
      global_layers: The units of the layers of the global features.
      arm_layers: The units of the layers of an arm's features.
      common_layers: The units of the layers after both.
      output_dim: The numbers of an arm: 1 gives rewards `[B, A]`, more `[B, A, n]`.
      global_preprocessing_combiner: A layer that makes one tensor of a nest of global
        features.
      arm_preprocessing_combiner: A layer that makes one tensor of a nest of an arm's
        features.
      activation_fn: The activation of hidden layers.
      final_activation_fn_for_q_network: The activation of the output; None for none.
      name: The network's name.
      seed: Seeds the initialisers; None follows `tf.random.set_seed`.
    """
    seeds = seeding.SeedStream(seed)
    towers = _towers(
        observation_spec,
        global_layers,
        arm_layers,
        activation_fn,
        seeds,
        global_preprocessing_combiner,
        arm_preprocessing_combiner,
    )
    size = sum(_size(tower) for tower in towers)
    common = q_network.QNetwork(
        tf.TensorSpec([size], tf.float32),
        tensor_spec.BoundedTensorSpec([], tf.int32, 0, output_dim - 1),
        fc_layer_params=tuple(common_layers),
        activation_fn=activation_fn,
        q_layer_activation_fn=final_activation_fn_for_q_network,
        seed=seeds(),
    )
    return GlobalAndArmCommonTowerNetwork(observation_spec, *towers, common, name=name)


def create_feed_forward_dot_product_network(
    observation_spec: Any,
    global_layers: Sequence[int],
    arm_layers: Sequence[int],
    activation_fn: Any = keras.activations.relu,
    *,
    seed: int | None = None,
) -> network.Network:
    """Returns a network whose rewards are products of global and arm embeddings.

    For the arguments see `create_feed_forward_common_tower_network`.

    Raises:
      ValueError: The last layers have different sizes.
    """
    if global_layers[-1] != arm_layers[-1]:
        raise ValueError(
            f"arm_layers: got {arm_layers[-1]} last units, expected "
            f"{global_layers[-1]}, as many as global_layers has; change one of them."
        )
    seeds = seeding.SeedStream(seed)
    towers = _towers(observation_spec, global_layers, arm_layers, activation_fn, seeds)
    return GlobalAndArmDotProductNetwork(observation_spec, *towers)


class _TwoTowers(network_outputs.RewardNetwork):
    """Base of networks with a tower for global and one for arm features."""

    def __init__(
        self,
        observation_spec: Any,
        global_network: network.Network,
        arm_network: network.Network,
        name: str | None = None,
    ) -> None:
        """Stores the towers.

        Args:
          observation_spec: The specs of the observation; the number of arms is ignored.
          global_network: Maps global features `[B, G]` to `[B, n]`.
          arm_network: Maps features of arms `[B, A, P]` to `[B, A, m]`.
          name: The network's name.
        """
        arm = tensor_spec.remove_outer_dims_nest(
            observation_spec[PER_ARM_FEATURE_KEY], 1
        )
        super().__init__(
            input_tensor_spec={
                GLOBAL_FEATURE_KEY: observation_spec[GLOBAL_FEATURE_KEY],
                # Training sees the chosen arm alone.
                PER_ARM_FEATURE_KEY: tensor_spec.add_outer_dim(arm),
            },
            name=name,
        )
        self._global_network = global_network
        self._arm_network = arm_network

    def _embed(self, observation: Any, training: bool) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the embeddings `[B, n]` and `[B, A, m]`."""
        of_all, _ = self._global_network(
            observation[GLOBAL_FEATURE_KEY], training=training
        )
        of_arms, _ = self._arm_network(
            observation[PER_ARM_FEATURE_KEY], training=training
        )
        return of_all, of_arms


class GlobalAndArmCommonTowerNetwork(_TwoTowers):
    """Joins the embeddings of global and arm features, and maps them to rewards."""

    def __init__(
        self,
        observation_spec: Any,
        global_network: network.Network,
        arm_network: network.Network,
        common_network: network.Network,
        name: str | None = None,
    ) -> None:
        """Stores the networks; see the function that creates such a network."""
        super().__init__(observation_spec, global_network, arm_network, name)
        self._common_network = common_network

    def _rewards(self, observation: Any, training: bool) -> tf.Tensor:
        of_all, of_arms = self._embed(observation, training)
        repeated = tf.broadcast_to(
            of_all[:, tf.newaxis],
            tf.concat([tf.shape(of_arms)[:-1], [of_all.shape[-1]]], axis=0),
        )
        joined = tf.concat([repeated, of_arms], axis=-1)
        output, _ = self._common_network(joined, training=training)
        return tf.squeeze(output, -1) if output.shape[-1] == 1 else output


class GlobalAndArmDotProductNetwork(_TwoTowers):
    """Multiplies the embeddings of global features and of each arm's features."""

    def _rewards(self, observation: Any, training: bool) -> tf.Tensor:
        of_all, of_arms = self._embed(observation, training)
        return tf.linalg.matvec(of_arms, of_all)


def _towers(
    spec: Any,
    global_layers: Sequence[int],
    arm_layers: Sequence[int],
    activation_fn: Any,
    seeds: Any,
    global_combiner: Any = None,
    arm_combiner: Any = None,
) -> tuple[network.Network, network.Network]:
    arm = tensor_spec.remove_outer_dims_nest(spec[PER_ARM_FEATURE_KEY], 1)

    def tower(own: Any, layers: Sequence[int], combiner: Any) -> network.Network:
        return encoding_network.EncodingNetwork(
            own,
            preprocessing_combiner=combiner,
            fc_layer_params=tuple(layers),
            activation_fn=activation_fn,
            seed=seeds(),
        )

    return (
        tower(spec[GLOBAL_FEATURE_KEY], global_layers, global_combiner),
        tower(arm, arm_layers, arm_combiner),
    )


def _size(tower: network.Network) -> int:
    return int(tower.create_variables().shape[-1])
