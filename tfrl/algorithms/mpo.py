"""`MPO` and `DMPO`: policies that are fitted to weighted actions, with bounded changes.

Abdolmaleki et al. (2018), and with a critic of distributions Hoffman et al. (2020). The
equations are in `tfrl.agents` and `tfrl.losses`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tfrl import losses, networks
from tfrl.algorithms import off_policy, parts, spaces, td3
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


class MPOSettings(off_policy.OffPolicySettings):
    """The settings of MPO. The epsilons are the largest KL divergences."""

    defaults: ClassVar = {
        "num_iterations": 19_000,
        "gamma": 0.98,
        "n_step_update": 5,
        "target_update_tau": 1.0,
        "activation": "usual",
    }

    fc_layer_params: tuple[int, ...] = field(
        (64, 64), "Units of the hidden layers.", check_layers
    )
    init_scale: float = field(1.0, "First standard deviation of the actions.", ABOVE_0)
    num_samples: int = field(20, "Actions drawn for each frame.", SIZE)
    policy_learning_rate: float = rate(1e-3)
    critic_learning_rate: float = rate(1e-3)
    dual_learning_rate: float = rate(
        1e-2, "Learning rate of Adam for temperatures and KL penalties."
    )
    target_update_period: int = field(
        100, "Updates between steps of the target networks.", COUNT
    )
    epsilon: float = field(
        0.1, "Bound on the KL of the actions' weights from uniform.", FROM_0
    )
    epsilon_mean: float = live(
        1e-2, "Bound on the policy's KL through its mean.", FROM_0
    )
    epsilon_stddev: float = live(
        1e-5, "Bound on the policy's KL through its deviation.", FROM_0
    )
    epsilon_penalty: float = field(
        1e-3, "Bound on the KL of the weights that penalize large actions.", FROM_0
    )
    init_log_temperature: float = field(1.0, "First log of both temperatures.", FINITE)
    init_log_alpha_mean: float = field(
        1.0, "First log weight of the penalty on the mean.", FINITE
    )
    init_log_alpha_stddev: float = field(
        10.0, "First log weight of the penalty on the deviation.", FINITE
    )


class DMPOSettings(MPOSettings):
    """The settings of DMPO."""

    # The least reward of Pendulum-v1, -16.27, divided by 1 - gamma.
    vmin: float = field(-814.0, "The smallest return.", FINITE)
    vmax: float = field(0.0, "The largest return.", FINITE)
    num_atoms: int = field(
        51,
        "Atoms of the critic's distribution, from vmin to vmax.",
        integer(2, 2**31 - 1),
    )


class MPO(off_policy.OffPolicy):
    """MPO: maximum a posteriori policy optimisation (Abdolmaleki et al., 2018)."""

    Settings: ClassVar[Any] = MPOSettings
    name = "mpo"
    title = "MPO"
    agent_name = "MpoAgent"
    environment_name = "Pendulum-v1"
    actions = "vector"

    def make_networks(self) -> dict[str, Any]:
        """Makes the policy, of normal distributions, and the critic."""
        s = self.settings
        encoder = spaces.observation_network(
            self.observation_spec,
            conv_layer_params=s.conv_layer_params or None,
            dtype=s.dtype,
            seed=s.seed,
        )
        policy = networks.Sequential(
            [
                *([] if encoder is None else [encoder]),
                networks.LayerNormMLP(
                    s.fc_layer_params,
                    activation=parts.mlp_activation(s),
                    activate_final=True,
                    dtype=s.dtype,
                ),
                networks.MultivariateNormalDiagHead(
                    self.environment.action_spec().shape.num_elements(),
                    init_scale=s.init_scale,
                    use_tfd_independent=True,
                ),
            ],
            seed=s.seed,
        )
        critic = self.make_critic()
        return {"policy_network": policy, "critic_network": critic}

    def make_critic(self) -> networks.Network:
        """Makes the critic, which predicts the mean of the return."""
        s = self.settings
        return networks.CriticNetwork(
            (self.observation_spec, self.environment.action_spec()),
            joint_fc_layer_params=s.fc_layer_params,
            seed=s.seed + 1,
            **parts.network_arguments(s, self.observation_spec, for_critic=True),
        )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        s = self.settings
        return {
            "policy_optimizer": parts.adam(s.policy_learning_rate),
            "critic_optimizer": parts.adam(s.critic_learning_rate),
            "dual_optimizer": parts.adam(s.dual_learning_rate),
            "policy_loss_module": losses.MPO(
                epsilon=s.epsilon,
                epsilon_mean=s.epsilon_mean,
                epsilon_stddev=s.epsilon_stddev,
                epsilon_penalty=s.epsilon_penalty,
                init_log_temperature=s.init_log_temperature,
                init_log_alpha_mean=s.init_log_alpha_mean,
                init_log_alpha_stddev=s.init_log_alpha_stddev,
            ),
            "num_samples": s.num_samples,
            "target_update_tau": s.target_update_tau,
            "target_update_period": s.target_update_period,
            "gamma": s.gamma,
            "n_step_update": s.n_step_update,
            "observation_normalizer": parts.observation_normalizer(
                s, self.observation_spec
            ),
            "seed": s.seed,
        }


class DMPO(MPO):
    """MPO with a critic of distributions (Hoffman et al., 2020)."""

    Settings = DMPOSettings
    name = "dmpo"
    title = "DMPO"
    agent_name = "DmpoAgent"

    def make_critic(self) -> networks.Network:
        """Makes the critic, which predicts the distribution of the return."""
        s = self.settings
        return td3.distributional_critic(s, self.environment)
