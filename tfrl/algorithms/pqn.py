"""`PQN`: Q-learning from rollouts, without replay (Gallici et al., 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfrl import networks
from tfrl.algorithms import mixins, on_policy, parts


class PQN(mixins.Epsilons, mixins.Lambda, on_policy.OnPolicy):
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
    lambda_value: float = 0.65
    epsilon_decay_iterations: int = 488

    def make_networks(self) -> dict[str, Any]:
        """Makes the Q-network, which has layer normalization."""
        network = networks.QNetwork(
            self.observation_spec,
            self.environment.action_spec(),
            fc_layer_params=self.fc_layer_params,
            layer_norm=True,
            seed=self.seed,
            **parts.network_arguments(self),
        )
        return {"q_network": network}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "optimizer": parts.adam(self.scheduled(self.learning_rate)),
            "gamma": self.gamma,
            "lambda_value": self.lambda_value,
        }
