"""A mixture of agents whose shares stay as they are."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.bandits.agents import mixture_agent


class StaticMixtureAgent(mixture_agent.MixtureAgent):
    """Mixes agents by a distribution that does not change."""

    def _update_mixture_distribution(
        self, experience: Any, weights: tf.Tensor | None = None
    ) -> None:
        """Changes nothing."""
