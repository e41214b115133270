"""MR.Q, which has one setting for all observations and actions.

Fujimoto et al. (2025). The equations are in `tfrl.agents`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfrl import agents, losses
from tfrl.algorithms import mixins, off_policy, parts
from tfrl.algorithms.settings import (
    COUNT,
    FROM_0,
    NOISES,
    SIZE,
    SIZE_OR_0,
    field,
    live,
    rate,
)


class MRQ(mixins.WeightDecay, off_policy.OffPolicy):
    """MR.Q: actor and critics on learned embeddings (Fujimoto et al., 2025).

    The paper's settings, for vectors, images, and discrete and continuous actions.
    Noise is in units of half the range of each action.
    """

    name = "mrq"
    title = "MR.Q"
    agent_name = "MrqAgent"
    environment_name = "Pendulum-v1"
    actions = "discrete or vector"

    num_iterations: int = 10_000
    initial_collect_steps: int = 10_000
    replay: str = "prioritized"
    replay_capacity: int = 1_000_000
    priority_exponent: float = 0.4
    importance_exponent: float = 0.0
    final_importance_exponent: float = 0.0
    batch_size: int = 256
    n_step_update: int = 3
    activation: str = "usual"
    actor_learning_rate: float = 3e-4
    critic_learning_rate: float = 3e-4
    weight_decay: float = 1e-4

    hidden_size: int = field(
        "Units of hidden layers, and numbers in embeddings.", SIZE, default=512
    )
    horizon: int = field("Steps that the encoder learns to predict.", SIZE, default=5)
    encoder_learning_rate: float = rate("Learning rate of the encoder.", default=1e-4)
    target_update_period: int = field(
        "Updates with the same targets and the same encoder.", COUNT, default=250
    )
    exploration_noise: float = live(
        "Standard deviation of Gaussian noise on actions.", FROM_0, NOISES, default=0.2
    )
    target_policy_noise: float = live(
        "Standard deviation of noise on the targets' actions.", FROM_0, default=0.2
    )
    target_policy_noise_clip: float = live(
        "Largest noise on the targets' actions.",
        FROM_0,
        default=0.3,
        needs=("target_policy_noise", True),
    )
    image_shift: int = field(
        "Largest random shift of large images, in pixels.", SIZE_OR_0, default=4
    )

    def make_networks(self) -> dict[str, Any]:
        """Makes the encoders, the actor and the critics."""
        made = agents.mrq.make_networks(
            self.observation_spec,
            self.environment.action_spec(),
            hidden_size=self.hidden_size,
            conv_layer_params=self.conv_layer_params or None,
            encoder=self.own_encoder,
            dtype=self.dtype,
            seed=self.seed,
            **parts.activation(self),
        )
        return made._asdict()

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "encoder_optimizer": parts.adam(
                self.encoder_learning_rate, **self.adam_arguments()
            ),
            "horizon": self.horizon,
            "target_update_period": self.target_update_period,
            "exploration_noise_std": self.exploration_noise,
            "target_policy_noise": self.target_policy_noise,
            "target_policy_noise_clip": self.target_policy_noise_clip,
            "image_shift": self.image_shift,
        }

    def largest_product(self) -> int:
        """Returns the multiplications of a layer; see `Builder.largest_product`."""
        return self.hidden_size**2 * self.batch_size

    def trained_sequence_length(self) -> int:
        """Returns the frames of a sampled sequence, for the horizon and the returns."""
        return max(self.horizon, self.n_step_update) + 1

    def priority_fn(self) -> Callable[[Any], Any]:
        """Returns the function that turns TD errors into priorities."""
        return losses.lap_priorities
