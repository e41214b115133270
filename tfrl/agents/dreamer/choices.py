"""Distributions of actions, as vectors, that DreamerV3's actor predicts."""

from __future__ import annotations

import abc
import math
from typing import Any

import tensorflow as tf

from tfrl import losses
from tfrl.agents import unit_actions
from tfrl.agents.dreamer import rssm
from tfrl.utils.random_numbers import seeds

_LEAST_STDDEV, _MOST_STDDEV = 0.1, 1.0


class Actor(abc.ABC):
    """Reads an actor's outputs as a distribution of vectors of actions.

    Attributes:
      actions: The conversion of actions to vectors `[N, A]`.
      num_outputs: The number of outputs of the actor.
    """

    def __init__(self, actions: unit_actions.UnitActions, num_outputs: int) -> None:
        """Stores both."""
        self.actions, self.num_outputs = actions, num_outputs

    @abc.abstractmethod
    def sample(self, outputs: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        """Returns drawn vectors `[N, A]`."""

    @abc.abstractmethod
    def mode(self, outputs: tf.Tensor) -> tf.Tensor:
        """Returns the most probable vectors `[N, A]`."""

    @abc.abstractmethod
    def log_prob(self, outputs: tf.Tensor, vectors: tf.Tensor) -> tf.Tensor:
        """Returns the logarithms of the densities of vectors, `[N]`."""

    @abc.abstractmethod
    def entropy(self, outputs: tf.Tensor) -> tf.Tensor:
        """Returns the entropies, `[N]`."""


class Continuous(Actor):
    """Normal distributions with a mean in [-1, 1], and a bounded deviation."""

    def __init__(self, actions: unit_actions.UnitActions) -> None:
        """Stores the conversion."""
        super().__init__(actions, 2 * actions.size)

    def _moments(self, outputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        mean, raw = tf.split(outputs, 2, axis=-1)
        span = _MOST_STDDEV - _LEAST_STDDEV
        return tf.tanh(mean), span * tf.sigmoid(raw + 2.0) + _LEAST_STDDEV

    def sample(self, outputs: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        """Returns drawn vectors; see `Actor`."""
        mean, stddev = self._moments(outputs)
        noise = seeds.normal(seed, tf.shape(mean))
        noise.set_shape(mean.shape)  # Else a plain graph does not know a size of 1.
        return mean + stddev * noise

    def mode(self, outputs: tf.Tensor) -> tf.Tensor:
        """Returns the means; see `Actor`."""
        return self._moments(outputs)[0]

    def log_prob(self, outputs: tf.Tensor, vectors: tf.Tensor) -> tf.Tensor:
        """Returns the logarithms of the densities; see `Actor`."""
        mean, stddev = self._moments(outputs)
        each = -0.5 * tf.square((vectors - mean) / stddev) - tf.math.log(stddev)
        return tf.reduce_sum(each - 0.5 * math.log(2 * math.pi), axis=-1)

    def entropy(self, outputs: tf.Tensor) -> tf.Tensor:
        """Returns the entropies; see `Actor`."""
        _, stddev = self._moments(outputs)
        each = tf.math.log(stddev) + 0.5 * math.log(2 * math.pi * math.e)
        return tf.reduce_sum(each, axis=-1)


class Discrete(Actor):
    """A categorical distribution, a hundredth of which is uniform."""

    def __init__(self, actions: unit_actions.UnitActions) -> None:
        """Stores the conversion."""
        super().__init__(actions, actions.size)

    def sample(self, outputs: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        """Returns drawn one-hot vectors; see `Actor`."""
        logits = losses.mixed_with_uniform(outputs)
        return rssm.mode(logits + rssm.gumbel(seed, tf.shape(logits)))

    def mode(self, outputs: tf.Tensor) -> tf.Tensor:
        """Returns one-hot vectors; see `Actor`."""
        return rssm.mode(outputs)

    def log_prob(self, outputs: tf.Tensor, vectors: tf.Tensor) -> tf.Tensor:
        """Returns the logarithms of the probabilities; see `Actor`."""
        logits = losses.mixed_with_uniform(outputs)
        return tf.reduce_sum(logits * vectors, axis=-1)

    def entropy(self, outputs: tf.Tensor) -> tf.Tensor:
        """Returns the entropies; see `Actor`."""
        logits = losses.mixed_with_uniform(outputs)
        return -tf.reduce_sum(tf.exp(logits) * logits, axis=-1)


def of(action_spec: Any) -> Actor:
    """Returns the reading for the spec of an action; see `unit_actions.of`."""
    actions = unit_actions.of(action_spec)
    if isinstance(actions, unit_actions.Choice):
        return Discrete(actions)
    return Continuous(actions)
