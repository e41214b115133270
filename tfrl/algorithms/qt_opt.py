"""Q-learning of continuous actions without an actor: `QtOpt`.

Kalashnikov et al. (2018). The equations are in `tfrl.agents`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfrl import networks, policies, utils
from tfrl.algorithms import off_policy, parts
from tfrl.algorithms.settings import (
    COUNT,
    SIZE,
    check_layers,
    encoder_kind,
    field,
    random_share,
    rate,
    remedy_for,
)


class QtOpt(off_policy.OffPolicy):
    """QT-Opt: a search for the best action of a Q-network (Kalashnikov et al., 2018).

    The search is the cross-entropy method on the target network.
    """

    name = "qt_opt"
    title = "QT-Opt"
    agent_name = "QtOptAgent"
    environment_name = "Pendulum-v1"
    actions = "vector"

    num_iterations: int = 19_000
    gamma: float = 0.98
    target_update_tau: float = 0.01

    fc_layer_params: Sequence[int] = field(
        "Units of the hidden layers.", check_layers, default=(64, 64)
    )
    encoder: str = encoder_kind(default="mlp")
    learning_rate: float = rate(default=1e-3)
    target_update_period: int = field(
        "Updates between steps of the target networks.", COUNT, default=1
    )
    delayed_target_update_period: int = field(
        "Updates between copies of the target network to the delayed ones.",
        COUNT,
        default=5,
    )
    exploration_epsilon: float = random_share(default=0.1)
    num_search_samples: int = field(
        "Actions in each iteration of the search.", SIZE, default=32
    )
    num_search_elites: int = field(
        "Best actions to which the search's distribution is fitted.", SIZE, default=4
    )
    num_search_iterations: int = field("Iterations of the search.", SIZE, default=3)

    def check_together(self) -> None:
        """Checks that there are as many samples as elites."""
        super().check_together()
        most = self.num_search_samples
        if self.num_search_elites > most:
            raise ValueError(
                f"num_search_elites: expected at most num_search_samples, {most}, got "
                f"{self.num_search_elites}; {remedy_for('num_search_elites')}."
            )

    def make_networks(self) -> dict[str, Any]:
        """Makes the network of observations and actions, which the agent copies."""
        critic = networks.CriticNetwork(
            (self.observation_spec, self.environment.action_spec()),
            joint_fc_layer_params=self.fc_layer_params,
            seed=self.seed,
            **parts.network_arguments(self, self.observation_spec, for_critic=True),
        )
        return {"q_network": critic}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        continuous = policies.samplers.qtopt_cem_actions_sampler_continuous
        return {
            "optimizer": parts.adam(self.learning_rate),
            "actions_sampler": continuous.GaussianActionsSampler(
                self.environment.action_spec()
            ),
            "td_errors_loss_fn": utils.common.element_wise_squared_loss,
            "epsilon_greedy": self.exploration_epsilon,
            "num_samples_cem": self.num_search_samples,
            "num_elites_cem": self.num_search_elites,
            "num_iter_cem": self.num_search_iterations,
            "target_update_tau": self.target_update_tau,
            "target_update_period": self.target_update_period,
            "delayed_target_update_period": self.delayed_target_update_period,
            "gamma": self.gamma,
            "n_step_update": self.n_step_update,
            "observation_normalizer": parts.observation_normalizer(
                self, self.observation_spec
            ),
            "seed": self.seed,
        }
