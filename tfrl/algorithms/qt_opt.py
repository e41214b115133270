"""Q-learning of continuous actions without an actor: `QtOpt`.

Kalashnikov et al. (2018). The equations are in `tfrl.agents`.
"""

from __future__ import annotations

from typing import Any

from tfrl import policies, utils
from tfrl.algorithms import mixins, off_policy, parts
from tfrl.algorithms.settings import COUNT, SIZE, field, remedy_for


class QtOpt(
    mixins.Epsilon,
    mixins.Targets,
    mixins.OneRate,
    mixins.Encoder,
    mixins.Layers,
    off_policy.OffPolicy,
):
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
    final_epsilon: float = 0.1

    delayed_target_update_period: int = field(
        "Updates between copies of the target network to the delayed ones.",
        COUNT,
        default=5,
    )
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
        return {"q_network": parts.critic(self, seed=self.seed)}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        continuous = policies.samplers.qtopt_cem_actions_sampler_continuous
        return {
            **super().agent_arguments(),
            "optimizer": parts.adam(self.learning_rate),
            "actions_sampler": continuous.GaussianActionsSampler(
                self.environment.action_spec()
            ),
            "td_errors_loss_fn": utils.common.element_wise_squared_loss,
            "epsilon_greedy": self.final_epsilon,
            "num_samples_cem": self.num_search_samples,
            "num_elites_cem": self.num_search_elites,
            "num_iter_cem": self.num_search_iterations,
            "delayed_target_update_period": self.delayed_target_update_period,
        }
