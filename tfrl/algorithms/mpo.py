"""`MPO` and `DMPO`: policies that are fitted to weighted actions, with bounded changes.

Abdolmaleki et al. (2018), and with a critic of distributions Hoffman et al. (2020). The
equations are in `tfrl.agents` and `tfrl.losses`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfrl import losses, networks
from tfrl.algorithms import off_policy, parts, spaces
from tfrl.algorithms.settings import (
    ABOVE_0,
    COUNT,
    FINITE,
    FROM_0,
    SIZE,
    check_layers,
    field,
    integer,
    live,
    rate,
)


class MPO(off_policy.OffPolicy):
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
    activation: str = "usual"

    fc_layer_params: Sequence[int] = field(
        "Units of the hidden layers.", check_layers, default=(64, 64)
    )
    init_scale: float = field(
        "First standard deviation of the actions.", ABOVE_0, default=1.0
    )
    num_samples: int = field("Actions drawn for each frame.", SIZE, default=20)
    policy_learning_rate: float = rate(default=1e-3)
    critic_learning_rate: float = rate(default=1e-3)
    dual_learning_rate: float = rate(
        "Learning rate of Adam for temperatures and KL penalties.", default=1e-2
    )
    target_update_period: int = field(
        "Updates between steps of the target networks.", COUNT, default=100
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
                networks.LayerNormMLP(
                    self.fc_layer_params,
                    activation=parts.mlp_activation(self),
                    activate_final=True,
                    dtype=self.dtype,
                ),
                networks.MultivariateNormalDiagHead(
                    self.environment.action_spec().shape.num_elements(),
                    init_scale=self.init_scale,
                    use_tfd_independent=True,
                ),
            ],
            seed=self.seed,
        )
        critic = self.make_critic()
        return {"policy_network": policy, "critic_network": critic}

    def make_critic(self) -> networks.Network:
        """Makes the critic, which predicts the mean of the return."""
        return networks.CriticNetwork(
            (self.observation_spec, self.environment.action_spec()),
            joint_fc_layer_params=self.fc_layer_params,
            seed=self.seed + 1,
            **parts.network_arguments(self, self.observation_spec, for_critic=True),
        )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
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
            "target_update_tau": self.target_update_tau,
            "target_update_period": self.target_update_period,
            "gamma": self.gamma,
            "n_step_update": self.n_step_update,
            "observation_normalizer": parts.observation_normalizer(
                self, self.observation_spec
            ),
            "seed": self.seed,
        }


class DMPO(MPO):
    """MPO with a critic of distributions (Hoffman et al., 2020)."""

    name = "dmpo"
    title = "DMPO"
    agent_name = "DmpoAgent"

    # The least reward of Pendulum-v1, -16.27, divided by 1 - gamma.
    vmin: float = field("The smallest return.", FINITE, default=-814.0)
    vmax: float = field("The largest return.", FINITE, default=0.0)
    num_atoms: int = field(
        "Atoms of the critic's distribution, from vmin to vmax.",
        integer(2, 2**31 - 1),
        default=51,
    )

    def make_critic(self) -> networks.Network:
        """Makes the critic, which predicts the distribution of the return."""
        return parts.distributional_critic(
            self,
            self.environment,
            self.fc_layer_params,
            (self.vmin, self.vmax, self.num_atoms),
        )
