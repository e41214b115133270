"""Deterministic actors: `TD3`, `DDPG` and `D4PG`.

Fujimoto et al. (2018), Lillicrap et al. (2016) and Barth-Maron et al. (2018). The
equations are in `tfrl.agents`.
"""

from __future__ import annotations

from typing import Any

from tfrl import networks, utils
from tfrl.algorithms import mixins, off_policy, parts
from tfrl.algorithms.settings import FRACTION, FROM_0, NOISES, field, live


class Deterministic(
    mixins.TargetStep, mixins.WeightDecay, mixins.Layers, off_policy.OffPolicy
):
    """The base of the algorithms of this module."""

    environment_name = "Pendulum-v1"
    actions = "continuous"

    num_iterations: int = 19_000
    gamma: float = 0.98

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor and the critic, which TD3 copies."""
        actor = parts.deterministic_actor(self)
        return {"actor_network": actor, "critic_network": self.make_critic()}

    def make_critic(self) -> networks.Network:
        """Makes the critic, which predicts the mean of the return."""
        return parts.critic(self)

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {**super().agent_arguments(), "noise_scaled_to_spec": True}


class TD3(
    off_policy.Memory,
    off_policy.Bins,
    mixins.ActorPeriod,
    mixins.Targets,
    mixins.Encoder,
    Deterministic,
):
    """TD3: a deterministic actor and two critics (Fujimoto et al., 2018).

    Noise is in units of half the range of each action.
    """

    name = "td3"
    title = "TD3"
    agent_name = "Td3Agent"
    has_own_critics = True

    # Those of Pendulum-v1 with a discount of 0.98.
    vmin: float = -814.0
    vmax: float = 0.0
    target_update_period: int = 2
    actor_update_period: int = 2

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
        return parts.critics(
            self, 2, self.fc_layer_params, num_quantiles=self.value_bins
        )

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor and the critic, which TD3 copies."""
        if not self.lstm_size:
            return super().make_networks()
        actor = networks.ActorRnnNetwork(
            self.actor_spec,
            self.environment.action_spec(),
            **self.lstm_arguments(self.fc_layer_params),
        )
        critic = self.make_lstm_critic(self.fc_layer_params)
        return {"actor_network": actor, "critic_network": critic}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            "td_errors_loss_fn": utils.common.element_wise_squared_loss,
            **super().agent_arguments(),  # With bins another loss.
            "exploration_noise_std": self.exploration_noise,
            "target_policy_noise": self.target_policy_noise,
            "target_policy_noise_clip": self.target_policy_noise_clip,
        }


class DDPG(mixins.Encoder, Deterministic):
    """DDPG: a deterministic actor and a critic (Lillicrap et al., 2016).

    Noise is in units of half the range of each action.
    """

    name = "ddpg"
    relative = "td3"
    title = "DDPG"
    agent_name = "DdpgAgent"
    has_own_critics = True

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


class D4PG(mixins.Targets, mixins.DistributionalCritic, Deterministic):
    """D4PG: DDPG whose critic predicts distributions (Barth-Maron et al., 2018)."""

    name = "d4pg"
    title = "D4PG"
    agent_name = "D4pgAgent"

    num_iterations: int = 29_000
    n_step_update: int = 5
    activation: str = "usual"
    target_update_tau: float = 1.0
    target_update_period: int = 100

    sigma: float = live(
        "Gaussian noise, in units of half of each action's range.",
        FROM_0,
        NOISES,
        default=0.3,
    )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {**super().agent_arguments(), "sigma": self.sigma}
