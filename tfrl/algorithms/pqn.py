"""`PQN`: Q-learning from rollouts, without replay (Gallici et al., 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfrl import networks
from tfrl.algorithms import on_policy, parts
from tfrl.algorithms.settings import (
    COUNT,
    EPSILONS,
    FRACTION,
    LAMBDAS,
    SIZE_OR_0,
    field,
    live,
)


class PQN(on_policy.OnPolicy):
    """PQN: Q(lambda) from rollouts, with layer normalization (Gallici et al., 2024).

    By default the settings are CleanRL's for CartPole-v1, but with Adam instead of
    RAdam, and with a larger learning rate and a discount nearer to 1. These two were
    chosen on seeds from 100 up.
    """

    name = "pqn"
    title = "PQN"
    agent_name = "PqnAgent"
    takes_masks = True
    actions = "discrete"

    num_iterations: int = 976
    num_envs: int = 4
    num_epochs: int = 4
    minibatch_size: int = 128
    fc_layer_params: Sequence[int] = (120, 84)
    gamma: float = 0.995
    max_gradient_norm: float = 10.0
    eval_interval: int = 122
    log_interval: int = 20
    checkpoint_interval: int = 244

    num_action_bins: int = field(
        "Evenly spaced values of a continuous action to choose from.",
        SIZE_OR_0,
        default=0,
    )
    lambda_value: float = live(
        "Lambda: 1 uses full returns, 0 one-step targets.",
        FRACTION,
        LAMBDAS,
        default=0.65,
    )
    initial_epsilon: float = live(
        "First probability of a random action.", FRACTION, default=1.0
    )
    final_epsilon: float = live(
        "Last probability of a random action.", FRACTION, EPSILONS, default=0.05
    )
    epsilon_decay_iterations: int = field(
        "Iterations from the first to the last epsilon.", COUNT, default=488
    )

    def make_networks(self) -> dict[str, Any]:
        """Makes the Q-network, which has layer normalization."""
        network = networks.QNetwork(
            self.observation_spec,
            self.environment.action_spec(),
            fc_layer_params=self.fc_layer_params,
            layer_norm=True,
            seed=self.seed,
            **parts.network_arguments(self, self.observation_spec),
        )
        return {"q_network": network}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        epsilon = parts.decay(
            self.initial_epsilon,
            self.epsilon_decay_iterations * self.updates_per_rollout,
            self.final_epsilon,
        )
        return {
            "optimizer": parts.adam(self.scheduled_rate()),
            "epsilon_greedy": epsilon,
            "gamma": self.gamma,
            "lambda_value": self.lambda_value,
            "gradient_clipping": self.max_gradient_norm or None,
            "seed": self.seed,
            "observation_normalizer": parts.observation_normalizer(
                self, self.observation_spec
            ),
        }
