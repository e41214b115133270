"""Layers that turn the distribution of a head into actions."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfrl.acme.tf import utils as tf2_utils
from tfrl.distributions import sampling
from tfrl.networks import module_network, utils
from tfrl.networks.construction import recorded_layer
from tfrl.utils.random_numbers import seeds


class DistributionLayer(recorded_layer.RecordedLayer):
    """Base class of layers that take a distribution."""

    def __call__(self, inputs: Any, **kwargs: Any) -> Any:
        """Applies the layer; Keras takes only tensors by position."""
        return super().__call__(inputs=inputs, **kwargs)


@keras.saving.register_keras_serializable("tfrl")
class StochasticModeHead(DistributionLayer):
    """Returns the mode of a distribution: the greedy action."""

    def call(self, inputs: Any) -> tf.Tensor:
        """Returns the mode, `[B, ...]`."""
        return inputs.mode()


@keras.saving.register_keras_serializable("tfrl")
class StochasticMeanHead(DistributionLayer):
    """Returns the mean of a distribution."""

    def call(self, inputs: Any) -> tf.Tensor:
        """Returns the mean, `[B, ...]`."""
        return inputs.mean()


@keras.saving.register_keras_serializable("tfrl")
class StochasticSamplingHead(DistributionLayer, recorded_layer.RandomLayer):
    """Returns a sample of a distribution, drawn by `tfrl.distributions.sampling`.

    A policy that draws its own samples, such as `ActorPolicy`, takes the distribution
    itself, and does not need this layer.
    """

    def call(self, inputs: Any) -> tf.Tensor:
        """Returns one sample for each distribution of the batch, `[B, ...]`."""
        return sampling.sample(inputs, self.next_seed())


@keras.saving.register_keras_serializable("tfrl")
class ApproximateMode(DistributionLayer):
    """Gives a transformed distribution a mode: the transformed mode.

    The transformed mode is not the point of the largest density, unless the
    transformation is linear, but squashed policies usually take it as the greedy
    action. Other distributions are returned unchanged.
    """

    def call(self, inputs: Any) -> Any:
        """Returns a distribution that has `mode()`."""
        import tensorflow_probability as tfp

        from tfrl.distributions import squash_to_spec

        if not isinstance(inputs, tfp.distributions.TransformedDistribution):
            return inputs
        return squash_to_spec.ApproximateModeDistribution(
            inputs.distribution, inputs.bijector
        )


@keras.saving.register_keras_serializable("tfrl")
class ExpQWeightedPolicy(recorded_layer.RandomLayer):
    """Samples several actions from an actor, and picks one by the critic's values.

    The probability of an action is proportional to `exp(Q(o, a) / beta)`. See Wang et
    al., "Critic regularized regression", 2020.
    """

    def __init__(
        self,
        actor_network: Any,
        critic_network: Any,
        beta: float = 1.0,
        num_action_samples: int = 16,
        seed: int | None = None,
        **kwargs: Any,
    ):
        """Takes the networks, which are not copied, so that weights can be shared.

        Args:
          actor_network: A Keras layer, stateless Network or function that maps
            observations to a distribution of actions, or to random actions.
          critic_network: A layer, Network or function that maps `(observation, action)`
            to values `[B]` or `[B, 1]`, or to a distribution of values, whose mean is
            taken.
          beta: The temperature, above 0.
          num_action_samples: The number of actions to choose from.
          seed: The seed of the actions; see `RandomLayer`.
          **kwargs: Passed to `keras.layers.Layer`.

        Raises:
          ValueError: If `beta` is not above 0.
        """
        super().__init__(seed, **{"autocast": False, **kwargs})
        if beta <= 0:
            raise ValueError(
                f"beta: got {beta}, expected a number above 0; the smaller it is, the "
                "greedier is the policy."
            )
        self.actor_network = module_network.as_layer(actor_network)
        self.critic_network = module_network.as_layer(critic_network)
        self._beta = beta
        self._num_samples = num_action_samples

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns the actions `[B, ...]` for observations, a nest of `[B, ...]`."""
        import tensorflow_probability as tfp

        squash = utils.BatchSquash(2)
        tiled = tf.nest.map_structure(
            squash.flatten, tf2_utils.tile_nested(inputs, self._num_samples)
        )
        action_seed, choice_seed = seeds.split_seed(self.next_seed(), 2)
        actions = utils.call_layer(self.actor_network, tiled, training)
        if utils.is_distribution(actions):
            actions = sampling.sample(actions, action_seed)
        values = utils.call_layer(self.critic_network, (tiled, actions), training)
        if utils.is_distribution(values):
            values = values.mean()
        values = tf.reshape(values, [self._num_samples, -1])
        chosen = sampling.sample(
            tfp.distributions.Categorical(logits=tf.transpose(values) / self._beta),
            choice_seed,
        )
        return tf.gather(
            tf2_utils.batch_to_sequence(squash.unflatten(actions)), chosen, batch_dims=1
        )
