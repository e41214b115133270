"""SAC and the algorithms based on it, whose actors keep their entropy.

`SAC` (Haarnoja et al., 2018), `REDQ` (Chen et al., 2021), `TQC` (Kuznetsov et al.,
2020) and `DiscreteSAC` (Christodoulou, 2019). The equations are in `tfrl.agents`.
"""

from __future__ import annotations

import functools
import math
from typing import Any, ClassVar

from tfrl import agents, environments, networks, policies
from tfrl.algorithms import off_policy, parts, spaces
from tfrl.algorithms.settings import (
    ABOVE_0,
    COUNT,
    FINITE,
    FRACTION,
    FROM_0,
    SIZE,
    SIZE_OR_0,
    check_layers,
    field,
    live,
    rate,
)


class EntropySettings(off_policy.OffPolicySettings):
    """The settings of all algorithms of this module."""

    defaults: ClassVar = {
        "num_iterations": 19_900,
        "initial_collect_steps": 100,
        "replay_capacity": 20_000,
    }

    actor_fc_layer_params: tuple[int, ...] = field(
        (64, 64), "Units of the actor's hidden layers.", check_layers
    )
    critic_fc_layer_params: tuple[int, ...] = field(
        (64, 64), "Units of each critic's hidden layers.", check_layers
    )
    actor_learning_rate: float = rate(1e-3)
    critic_learning_rate: float = rate(1e-3)
    alpha_learning_rate: float = rate(
        1e-3, "Learning rate of Adam; 0 fixes the temperature."
    )
    anneal_learning_rates: bool = field(
        False, "Whether the learning rates fall linearly to 0."
    )
    initial_alpha: float = live(1.0, "First temperature.", ABOVE_0)
    target_update_period: int = field(
        1, "Updates between steps of the target networks.", COUNT
    )


class SACSettings(EntropySettings):
    """The settings of SAC and REDQ."""

    num_critics: int = field(2, "Critics in the ensemble; 10 in REDQ.", SIZE)
    num_min: int = field(
        0, "Critics in a target's minimum; 2 in REDQ, 0 uses all.", SIZE_OR_0
    )
    # Of actions scaled to [-1, 1]. SacAgent's own default is half of it.
    target_entropy_per_dimension: float = live(
        -1.0, "Target entropy for each dimension of the actions.", FINITE
    )
    ou_stddev: float = field(
        0.0, "Deviation of Ornstein-Uhlenbeck noise, for actions in [-1, 1].", FROM_0
    )
    ou_damping: float = field(
        0.15, "Damping of that noise; 1 makes it uncorrelated.", FRACTION
    )
    gsde_sample_freq: int = field(
        0, "Steps with one matrix of state-dependent noise; 0: off.", SIZE_OR_0
    )
    gsde_initial_log_std: float = field(
        -3.0, "First log standard deviation of that noise.", FINITE
    )


class TQCSettings(SACSettings):
    """The settings of TQC."""

    num_quantiles: int = field(25, "Quantiles that a critic predicts.", SIZE)
    num_dropped_quantiles: int = field(
        2, "Largest quantiles dropped for each critic.", SIZE_OR_0
    )


class DiscreteSACSettings(EntropySettings):
    """The settings of discrete SAC.

    Almost no entropy is left in a policy that balances CartPole's pole for 500 steps,
    so the target is far below the published 0.98 of the uniform policy's.
    """

    defaults: ClassVar = {
        "num_iterations": 49_000,
        "initial_collect_steps": 1_000,
        "train_steps_per_iteration": 2,
        "replay_capacity": 50_000,
        "anneal_learning_rates": True,
        "target_update_tau": 0.02,
        "eval_interval": 2_000,
    }

    target_entropy_fraction: float = live(
        0.2, "Target entropy, as a share of the largest entropy.", FRACTION
    )


class SAC(off_policy.OffPolicy):
    """SAC: a tanh-squashed normal policy, and critics (Haarnoja et al., 2018)."""

    Settings: ClassVar[Any] = SACSettings
    name = "sac"
    title = "SAC"
    agent_name = "SacAgent"
    environment_name = "Pendulum-v1"
    actions = "continuous"

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor and the ensemble of critics."""
        s = self.settings
        specs = self.observation_spec, self.environment.action_spec()
        common = parts.network_arguments(s, self.observation_spec)
        projection: Any = functools.partial(
            agents.sac.TanhNormalProjectionNetwork,
            std_transform=agents.sac.std_clip_transform,
        )
        if s.gsde_sample_freq:
            projection = functools.partial(
                networks.StateDependentNoiseProjectionNetwork,
                initial_log_std=s.gsde_initial_log_std,
            )
        actor = networks.ActorDistributionNetwork(
            *specs,
            fc_layer_params=s.actor_fc_layer_params,
            continuous_projection_net=projection,
            seed=s.seed,
            **common,
        )
        critics = networks.CriticEnsembleNetwork(
            specs,
            num_critics=s.num_critics,
            num_quantiles=getattr(s, "num_quantiles", None),
            fc_layer_params=s.critic_fc_layer_params,
            seed=s.seed + 1,
            **parts.network_arguments(s, self.observation_spec, for_critic=True),
        )
        return {"critic_network": critics, "actor_network": actor}

    @property
    def action_kind(self) -> spaces.Kind:
        """The kind of its actions; with state-dependent noise they form one vector."""
        return "vector" if self.settings.gsde_sample_freq else "continuous"

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        import tensorflow as tf  # Not at the top: --help does not wait for it.

        s = self.settings
        num_dimensions = sum(
            spec.shape.num_elements()
            for spec in tf.nest.flatten(self.environment.action_spec())
        )
        return {
            "target_entropy": parts.product(
                s.target_entropy_per_dimension, num_dimensions
            ),
            "num_min": s.num_min or None,
            "exploration": functools.partial(_with_noise, s),
            **_shared_arguments(s, self.environment, self.num_iterations),
        }


class REDQ(SAC):
    """REDQ: SAC with ten critics, of which a target uses two (Chen et al., 2021)."""

    name = "redq"
    relative = "sac"
    title = "REDQ"
    overrides: ClassVar = {
        "num_critics": 10,
        "num_min": 2,
        "train_steps_per_iteration": 20,
    }


class TQC(SAC):
    """TQC: targets drop the critics' largest quantiles (Kuznetsov et al., 2020)."""

    Settings = TQCSettings
    name = "tqc"
    relative = "sac"
    title = "TQC"
    agent_name = "TqcAgent"

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        s = self.settings
        arguments = super().agent_arguments()
        return {**arguments, "num_dropped_quantiles": s.num_dropped_quantiles}


class DiscreteSAC(off_policy.OffPolicy):
    """Discrete SAC: a categorical policy, and two Q-networks (Christodoulou, 2019)."""

    Settings = DiscreteSACSettings
    name = "discrete_sac"
    title = "Discrete SAC"
    agent_name = "DiscreteSacAgent"
    actions = "discrete"

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor and the Q-network, which the agent copies."""
        s = self.settings
        specs = self.observation_spec, self.environment.action_spec()
        common = parts.network_arguments(s, self.observation_spec)
        return {
            "critic_network": networks.QNetwork(
                *specs,
                fc_layer_params=s.critic_fc_layer_params,
                seed=s.seed + 1,
                **common,
            ),
            "actor_network": networks.ActorDistributionNetwork(
                *specs, fc_layer_params=s.actor_fc_layer_params, seed=s.seed, **common
            ),
        }

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        s = self.settings
        spec = self.environment.action_spec()
        num_actions = spec.maximum - spec.minimum + 1
        return {
            "target_entropy": parts.product(
                s.target_entropy_fraction, math.log(num_actions)
            ),
            **_shared_arguments(s, self.environment, self.num_iterations),
        }


def _with_noise(s: Any, policy: policies.TFPolicy) -> policies.TFPolicy:
    """Returns the policy that collects: `policy`, with the noise of the settings."""
    if s.gsde_sample_freq:
        policy = policies.StateDependentNoisePolicy(
            policy, s.gsde_sample_freq, seed=s.seed
        )
    if s.ou_stddev:
        policy = policies.OUNoisePolicy(
            policy,
            ou_stddev=s.ou_stddev,
            ou_damping=s.ou_damping,
            seed=s.seed,
            scaled_to_spec=True,
            reset_at_episode_start=True,
        )
    return policy


def _shared_arguments(
    s: Any, environment: environments.TFEnvironment, num_iterations: int
) -> dict[str, Any]:
    """Returns the arguments that all agents of this module have."""

    def adam(rate: Any) -> Any:
        if s.anneal_learning_rates:
            rate = parts.decay(rate, num_iterations * s.train_steps_per_iteration, 0.0)
        return parts.adam(rate)

    alpha_rate = s.alpha_learning_rate
    return {
        "actor_optimizer": adam(s.actor_learning_rate),
        "critic_optimizer": adam(s.critic_learning_rate),
        "alpha_optimizer": adam(alpha_rate) if alpha_rate else None,
        "initial_log_alpha": math.log(s.initial_alpha),
        "target_update_tau": s.target_update_tau,
        "target_update_period": s.target_update_period,
        "gamma": s.gamma,
        "observation_normalizer": parts.observation_normalizer(
            s, environment.observation_spec()
        ),
        "n_step_update": s.n_step_update,
        "greedy_eval": True,
        "seed": s.seed,
    }
