"""Deterministic actors: `TD3`, `DDPG` and `D4PG`.

Fujimoto et al. (2018), Lillicrap et al. (2016) and Barth-Maron et al. (2018). The
equations are in `tfrl.agents`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tfrl import environments, networks, utils
from tfrl.algorithms import off_policy, parts, spaces
from tfrl.algorithms.settings import (
    COUNT,
    FINITE,
    FRACTION,
    FROM_0,
    NOISES,
    check_layers,
    field,
    integer,
    live,
    rate,
)


class DeterministicSettings(off_policy.OffPolicySettings):
    """The settings of all algorithms of this module."""

    defaults: ClassVar = {"num_iterations": 19_000, "gamma": 0.98}

    fc_layer_params: tuple[int, ...] = field(
        (64, 64), "Units of the hidden layers.", check_layers
    )
    actor_learning_rate: float = rate(1e-3)
    critic_learning_rate: float = rate(1e-3)


class TD3Settings(DeterministicSettings):
    """The settings of TD3. Noise is in units of half the range of each action."""

    target_update_period: int = field(
        2, "Updates between steps of the target networks.", COUNT
    )
    actor_update_period: int = field(
        2, "Critic updates for each update of the actor.", COUNT
    )
    exploration_noise: float = live(
        0.1, "Standard deviation of Gaussian noise on actions.", FROM_0, NOISES
    )
    target_policy_noise: float = live(
        0.2, "Standard deviation of noise on the targets' actions.", FROM_0
    )
    target_policy_noise_clip: float = live(
        0.5, "Largest noise on the targets' actions.", FROM_0
    )


class DDPGSettings(DeterministicSettings):
    """The settings of DDPG. Noise is in units of half the range of each action."""

    ou_stddev: float = live(
        0.2, "Deviation of Ornstein-Uhlenbeck noise in each step.", FROM_0, NOISES
    )
    ou_damping: float = field(
        0.15, "Rate at which the noise returns to zero.", FRACTION
    )


class D4PGSettings(DeterministicSettings):
    """The settings of D4PG."""

    defaults: ClassVar = {
        "num_iterations": 29_000,
        "n_step_update": 5,
        "activation": "usual",
        "target_update_tau": 1.0,
    }

    target_update_period: int = field(
        100, "Updates between steps of the target networks.", COUNT
    )
    # The least reward of Pendulum-v1, -16.27, divided by 1 - gamma.
    vmin: float = field(-814.0, "The smallest return.", FINITE)
    vmax: float = field(0.0, "The largest return.", FINITE)
    num_atoms: int = field(
        51,
        "Atoms of the critic's distribution, from vmin to vmax.",
        integer(2, 2**31 - 1),
    )
    sigma: float = live(
        0.3,
        "Gaussian noise, in units of half of each action's range.",
        FROM_0,
        NOISES,
    )


class TD3(off_policy.OffPolicy):
    """TD3: a deterministic actor and two critics (Fujimoto et al., 2018)."""

    Settings: ClassVar[Any] = TD3Settings
    name = "td3"
    title = "TD3"
    agent_name = "Td3Agent"
    environment_name = "Pendulum-v1"
    actions = "continuous"

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor and the critic, which TD3 copies."""
        s = self.settings
        specs = self.observation_spec, self.environment.action_spec()
        common = parts.network_arguments(s, self.observation_spec)
        return {
            "actor_network": networks.ActorNetwork(
                *specs, s.fc_layer_params, seed=s.seed, **common
            ),
            "critic_network": networks.CriticNetwork(
                specs,
                joint_fc_layer_params=s.fc_layer_params,
                seed=s.seed + 1,
                **parts.network_arguments(s, self.observation_spec, for_critic=True),
            ),
        }

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        s = self.settings
        return {
            **_shared_arguments(s, self.environment),
            "td_errors_loss_fn": utils.common.element_wise_squared_loss,
            "exploration_noise_std": s.exploration_noise,
            "target_update_period": s.target_update_period,
            "actor_update_period": s.actor_update_period,
            "target_policy_noise": s.target_policy_noise,
            "target_policy_noise_clip": s.target_policy_noise_clip,
        }


class DDPG(TD3):
    """DDPG: a deterministic actor and a critic (Lillicrap et al., 2016)."""

    Settings = DDPGSettings
    name = "ddpg"
    relative = "td3"
    title = "DDPG"
    agent_name = "DdpgAgent"

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        s = self.settings
        return {
            **_shared_arguments(s, self.environment),
            "td_errors_loss_fn": utils.common.element_wise_squared_loss,
            "ou_stddev": s.ou_stddev,
            "ou_damping": s.ou_damping,
            "reset_noise_at_episode_start": True,
        }


class D4PG(off_policy.OffPolicy):
    """D4PG: DDPG whose critic predicts distributions (Barth-Maron et al., 2018)."""

    Settings = D4PGSettings
    name = "d4pg"
    title = "D4PG"
    agent_name = "D4pgAgent"
    environment_name = "Pendulum-v1"
    actions = "continuous"

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor and the critic of distributions."""
        s = self.settings
        return {
            "actor_network": networks.ActorNetwork(
                self.observation_spec,
                self.environment.action_spec(),
                s.fc_layer_params,
                seed=s.seed,
                **parts.network_arguments(s, self.observation_spec),
            ),
            "critic_network": distributional_critic(s, self.environment),
        }

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        s = self.settings
        return {
            **_shared_arguments(s, self.environment),
            "sigma": s.sigma,
            "target_update_period": s.target_update_period,
        }


def distributional_critic(
    s: Any, environment: environments.TFEnvironment
) -> networks.Network:
    """Makes a critic that predicts the distribution of the return."""
    encoder = spaces.observation_network(
        environment.observation_spec(),
        conv_layer_params=s.conv_layer_params or None,
        dtype=s.dtype,
        seed=s.seed + 1,
    )
    return networks.Sequential(
        [
            networks.CriticMultiplexer(observation_network=encoder),
            networks.LayerNormMLP(
                s.fc_layer_params,
                activation=parts.mlp_activation(s),
                activate_final=True,
                dtype=s.dtype,
            ),
            networks.DiscreteValuedHead(s.vmin, s.vmax, s.num_atoms),
        ],
        seed=s.seed + 1,
    )


def _shared_arguments(
    s: Any, environment: environments.TFEnvironment
) -> dict[str, Any]:
    """Returns the arguments that all agents of this module have."""
    return {
        "actor_optimizer": parts.adam(s.actor_learning_rate),
        "critic_optimizer": parts.adam(s.critic_learning_rate),
        "target_update_tau": s.target_update_tau,
        "gamma": s.gamma,
        "n_step_update": s.n_step_update,
        "noise_scaled_to_spec": True,
        "observation_normalizer": parts.observation_normalizer(
            s, environment.observation_spec()
        ),
        "seed": s.seed,
    }
