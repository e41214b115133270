"""`MPO` and `DMPO`: policies that are fitted to weighted actions, with bounded changes.

Abdolmaleki et al. (2018), and with a critic of distributions Hoffman et al. (2020). The
equations are in `tfrl.agents` and `tfrl.losses`.
"""

from __future__ import annotations

from typing import Any

from tfrl import losses, networks
from tfrl.algorithms import mixins, off_policy, parts, spaces
from tfrl.algorithms.settings import (
    ABOVE_0,
    FINITE,
    FROM_0,
    SIZE,
    field,
    live,
    rate,
)


class MPO(mixins.Targets, mixins.Layers, off_policy.OffPolicy):
    """MPO: maximum a posteriori policy optimisation (Abdolmaleki et al., 2018).

    The epsilons are the largest KL divergences.
    """

    name = "mpo"
    title = "MPO"
    agent_name = "MpoAgent"
    environment_name = "Pendulum-v1"
    actions = "vector"

    num_iterations: int = 19_000
    gamma: float = 0.98
    n_step_update: int = 5
    target_update_tau: float = 1.0
    target_update_period: int = 100
    activation: str = "usual"

    init_scale: float = field(
        "First standard deviation of the actions.", ABOVE_0, default=1.0
    )
    num_samples: int = field("Actions drawn for each frame.", SIZE, default=20)
    policy_learning_rate: float = rate(default=1e-3)
    critic_learning_rate: float = rate(default=1e-3)
    dual_learning_rate: float = rate(
        "Learning rate of Adam for temperatures and KL penalties.", default=1e-2
    )
    epsilon: float = field(
        "Bound on the KL of the actions' weights from uniform.", FROM_0, default=0.1
    )
    epsilon_mean: float = live(
        "Bound on the policy's KL through its mean.", FROM_0, default=1e-2
    )
    epsilon_stddev: float = live(
        "Bound on the policy's KL through its deviation.", FROM_0, default=1e-5
    )
    epsilon_penalty: float = field(
        "Bound on the KL of the weights that penalize large actions.",
        FROM_0,
        default=1e-3,
    )
    init_log_temperature: float = field(
        "First log of both temperatures.", FINITE, default=1.0
    )
    init_log_alpha_mean: float = field(
        "First log weight of the penalty on the mean.", FINITE, default=1.0
    )
    init_log_alpha_stddev: float = field(
        "First log weight of the penalty on the deviation.", FINITE, default=10.0
    )

    def make_networks(self) -> dict[str, Any]:
        """Makes the policy, of normal distributions, and the critic."""
        encoder = spaces.observation_network(
            self.observation_spec,
            conv_layer_params=self.conv_layer_params or None,
            encoder=self.own_encoder,
            dtype=self.dtype,
            seed=self.seed,
        )
        policy = networks.Sequential(
            [
                *([] if encoder is None else [encoder]),
                parts.normed_layers(self),
                networks.MultivariateNormalDiagHead(
                    self.environment.action_spec().shape.num_elements(),
                    init_scale=self.init_scale,
                    use_tfd_independent=True,
                ),
            ],
            seed=self.seed,
        )
        return {"policy_network": policy, "critic_network": self.make_critic()}

    def make_critic(self) -> networks.Network:
        """Makes the critic, which predicts the mean of the return."""
        return parts.critic(self)

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "policy_optimizer": parts.adam(self.policy_learning_rate),
            "critic_optimizer": parts.adam(self.critic_learning_rate),
            "dual_optimizer": parts.adam(self.dual_learning_rate),
            "policy_loss_module": losses.MPO(
                epsilon=self.epsilon,
                epsilon_mean=self.epsilon_mean,
                epsilon_stddev=self.epsilon_stddev,
                epsilon_penalty=self.epsilon_penalty,
                init_log_temperature=self.init_log_temperature,
                init_log_alpha_mean=self.init_log_alpha_mean,
                init_log_alpha_stddev=self.init_log_alpha_stddev,
            ),
            "num_samples": self.num_samples,
        }


class DMPO(mixins.DistributionalCritic, MPO):
    """MPO with a critic of distributions (Hoffman et al., 2020)."""

    name = "dmpo"
    title = "DMPO"
    agent_name = "DmpoAgent"
