"""A mixture of agents whose shares stay as they are."""

from __future__ import annotations

import tensorflow as tf

from tfrl.bandits.agents import mixture_agent


class StaticMixtureAgent(mixture_agent.MixtureAgent):
    """Mixes agents by a distribution that does not change."""

    def _update_mixture_distribution(
        self, reward: tf.Tensor, choice: tf.Tensor, weights: tf.Tensor
    ) -> None:
        """Changes nothing."""
