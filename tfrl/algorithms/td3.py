"""Deterministic actors: `TD3`, `DDPG` and `D4PG`.

Fujimoto et al. (2018), Lillicrap et al. (2016) and Barth-Maron et al. (2018). The
equations are in `tfrl.agents`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfrl import networks, utils
from tfrl.algorithms import off_policy, parts
from tfrl.algorithms.settings import (
    COUNT,
    FINITE,
    FRACTION,
    FROM_0,
    NOISES,
    check_layers,
    decay_of_weights,
    encoder_kind,
    field,
    integer,
    live,
    rate,
)


class Deterministic(off_policy.OffPolicy):
    """The base of the algorithms of this module."""

    environment_name = "Pendulum-v1"
    actions = "continuous"

    num_iterations: int = 19_000
    gamma: float = 0.98

    fc_layer_params: Sequence[int] = field(
        "Units of the hidden layers.", check_layers, default=(64, 64)
    )
    encoder: str = encoder_kind(default="mlp")
    actor_learning_rate: float = rate(default=1e-3)
    critic_learning_rate: float = rate(default=1e-3)
    weight_decay: float = decay_of_weights(default=0.0)

    def check_together(self) -> None:
        """Checks the sizes of residual blocks, too."""
        super().check_together()
        parts.check_blocks(self, "fc_layer_params")

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor and the critic, which TD3 copies."""
        actor = parts.deterministic_actor(
            self, self.observation_spec, self.environment.action_spec()
        )
        return {"actor_network": actor, "critic_network": self.make_critic()}

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
            "actor_optimizer": parts.adam(
                self.actor_learning_rate, weight_decay=self.weight_decay
            ),
            "critic_optimizer": parts.adam(
                self.critic_learning_rate, weight_decay=self.weight_decay
            ),
            "target_update_tau": self.target_update_tau,
            "gamma": self.gamma,
            "n_step_update": self.n_step_update,
            "noise_scaled_to_spec": True,
            "observation_normalizer": parts.observation_normalizer(
                self, self.observation_spec
            ),
            "seed": self.seed,
        }


class TD3(Deterministic, off_policy.WithMemory, off_policy.WithBins):
    """TD3: a deterministic actor and two critics (Fujimoto et al., 2018).

    Noise is in units of half the range of each action.
    """

    name = "td3"
    title = "TD3"
    agent_name = "Td3Agent"

    # Those of Pendulum-v1 with a discount of 0.98.
    vmin: float = -814.0
    vmax: float = 0.0

    target_update_period: int = field(
        "Updates between steps of the target networks.", COUNT, default=2
    )
    actor_update_period: int = field(
        "Critic updates for each update of the actor.", COUNT, default=2
    )
    exploration_noise: float = live(
        "Standard deviation of Gaussian noise on actions.", FROM_0, NOISES, default=0.1
    )
    target_policy_noise: float = live(
        "Standard deviation of noise on the targets' actions.", FROM_0, default=0.2
    )
    target_policy_noise_clip: float = live(
        "Largest noise on the targets' actions.",
        FROM_0,
        default=0.5,
        needs=("target_policy_noise", True),
    )

    def make_critic(self) -> networks.Network:
        """Makes the critic, which TD3 copies, or both as an ensemble with bins."""
        if not self.value_bins:
            return super().make_critic()
        return networks.CriticEnsembleNetwork(
            (self.observation_spec, self.environment.action_spec()),
            num_critics=2,
            num_quantiles=self.value_bins,
            fc_layer_params=self.fc_layer_params,
            seed=self.seed + 1,
            **parts.network_arguments(self, self.observation_spec, for_critic=True),
        )

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor and the critic, which TD3 copies."""
        if not self.lstm_size:
            return super().make_networks()
        actor = networks.ActorRnnNetwork(
            self.observation_spec,
            self.environment.action_spec(),
            **self.lstm_arguments(self.fc_layer_params),
        )
        critic = self.make_lstm_critic(self.fc_layer_params)
        return {"actor_network": actor, "critic_network": critic}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "td_errors_loss_fn": utils.common.element_wise_squared_loss,
            "exploration_noise_std": self.exploration_noise,
            "target_update_period": self.target_update_period,
            "actor_update_period": self.actor_update_period,
            "target_policy_noise": self.target_policy_noise,
            "target_policy_noise_clip": self.target_policy_noise_clip,
            **self.loss_of_bins(),
        }


class DDPG(Deterministic):
    """DDPG: a deterministic actor and a critic (Lillicrap et al., 2016).

    Noise is in units of half the range of each action.
    """

    name = "ddpg"
    relative = "td3"
    title = "DDPG"
    agent_name = "DdpgAgent"

    ou_stddev: float = live(
        "Deviation of Ornstein-Uhlenbeck noise in each step.",
        FROM_0,
        NOISES,
        default=0.2,
    )
    ou_damping: float = field(
        "Rate at which the noise returns to zero.",
        FRACTION,
        default=0.15,
        needs=("ou_stddev", True),
    )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "td_errors_loss_fn": utils.common.element_wise_squared_loss,
            "ou_stddev": self.ou_stddev,
            "ou_damping": self.ou_damping,
            "reset_noise_at_episode_start": True,
        }


class D4PG(Deterministic):
    """D4PG: DDPG whose critic predicts distributions (Barth-Maron et al., 2018)."""

    name = "d4pg"
    title = "D4PG"
    agent_name = "D4pgAgent"
    without_settings = frozenset({"encoder"})

    num_iterations: int = 29_000
    n_step_update: int = 5
    activation: str = "usual"
    target_update_tau: float = 1.0

    target_update_period: int = field(
        "Updates between steps of the target networks.", COUNT, default=100
    )
    # The least reward of Pendulum-v1, -16.27, divided by 1 - gamma.
    vmin: float = field("The smallest return.", FINITE, default=-814.0)
    vmax: float = field("The largest return.", FINITE, default=0.0)
    num_atoms: int = field(
        "Atoms of the critic's distribution, from vmin to vmax.",
        integer(2, 2**31 - 1),
        default=51,
    )
    sigma: float = live(
        "Gaussian noise, in units of half of each action's range.",
        FROM_0,
        NOISES,
        default=0.3,
    )

    def make_critic(self) -> networks.Network:
        """Makes the critic, which predicts the distribution of the return."""
        return parts.distributional_critic(
            self,
            self.environment,
            self.fc_layer_params,
            (self.vmin, self.vmax, self.num_atoms),
        )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "sigma": self.sigma,
            "target_update_period": self.target_update_period,
        }
