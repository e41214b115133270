"""SAC and the algorithms based on it, whose actors keep their entropy.

`SAC` (Haarnoja et al., 2018), `REDQ` (Chen et al., 2021), `DroQ` (Hiraoka et al.,
2022), `TQC` (Kuznetsov et al., 2020), `CrossQ` (Bhatt et al., 2024) and `DiscreteSAC`
(Christodoulou, 2019). The equations are in `tfrl.agents`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, ClassVar

from tfrl import networks, policies, utils
from tfrl.algorithms import mixins, off_policy, parts
from tfrl.algorithms.settings import (
    ABOVE_0,
    BELOW_1,
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


class EntropyRegularized(
    mixins.FinalRate, mixins.ActorCriticRates, off_policy.OffPolicy
):
    """The base of the algorithms of this module."""

    num_iterations: int = 19_900
    initial_collect_steps: int = 100
    replay_capacity: int = 20_000
    final_learning_rate: float | None = None

    actor_fc_layer_params: Sequence[int] = field(
        "Units of the actor's hidden layers.", check_layers, default=(64, 64)
    )
    critic_fc_layer_params: Sequence[int] = field(
        "Units of each critic's hidden layers.", check_layers, default=(64, 64)
    )
    alpha_learning_rate: float = rate(
        "Learning rate of Adam; 0 fixes the temperature.", default=1e-3
    )
    initial_alpha: float = live("First temperature.", ABOVE_0, default=1.0)

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        rate = self.alpha_learning_rate
        return {
            **super().agent_arguments(),
            "alpha_optimizer": parts.adam(self.scheduled(rate)) if rate else None,
            "initial_log_alpha": math.log(self.initial_alpha),
            "greedy_eval": True,
        }


class ContinuousActor(
    mixins.ActorPeriod,
    mixins.WeightDecay,
    mixins.StateDependentNoise,
    EntropyRegularized,
):
    """The base of SAC and its variants: a tanh-squashed actor, and critics."""

    environment_name = "Pendulum-v1"
    actions = "continuous"
    has_own_critics = True

    num_critics: int = field("Critics in the ensemble; 10 in REDQ.", SIZE, default=2)
    num_min: int = field(
        "Critics in a target's minimum; 2 in REDQ, 0 uses all.", SIZE_OR_0, default=0
    )
    # Of actions scaled to [-1, 1]. SacAgent's own default is half of it.
    target_entropy_per_dimension: float = live(
        "Target entropy for each dimension of the actions.",
        FINITE,
        default=-1.0,
        needs=("alpha_learning_rate", True),
    )
    ou_stddev: float = field(
        "Deviation of Ornstein-Uhlenbeck noise, for actions in [-1, 1].",
        FROM_0,
        default=0.0,
    )
    ou_damping: float = field(
        "Damping of that noise; 1 makes it uncorrelated.",
        FRACTION,
        default=0.15,
        needs=("ou_stddev", True),
    )
    gsde_initial_log_std: float = field(
        "First log standard deviation of that noise.",
        FINITE,
        default=-3.0,
        needs=("gsde_sample_freq", True),
    )

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor and the ensemble of critics."""
        actor = parts.stochastic_actor(
            self,
            self.actor_fc_layer_params,
            continuous_projection_net=self.projection(),
            **self.body_arguments(),
        )
        return {"critic_network": self.make_critic(), "actor_network": actor}

    def projection(self) -> Any:
        """Returns the actor's head."""
        if not self.gsde_sample_freq:
            return parts.squashed_projection()
        return functools.partial(
            networks.StateDependentNoiseProjectionNetwork,
            initial_log_std=self.gsde_initial_log_std,
        )

    def body_arguments(self) -> dict[str, Any]:
        """Returns the networks' arguments for their hidden layers."""
        return {}

    def make_critic(self, **arguments: Any) -> networks.Network:
        """Makes the ensemble of critics.

        Args:
          **arguments: Further arguments of `networks.CriticEnsembleNetwork`.
        """
        return parts.critics(
            self,
            self.num_critics,
            self.critic_fc_layer_params,
            **arguments,
            **self.body_arguments(),
        )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "target_entropy": parts.product(
                self.target_entropy_per_dimension,
                utils.actions.num_components(self.environment.action_spec()),
            ),
            "num_min": self.num_min or None,
            "exploration": self.with_noise,
        }

    def with_noise(self, policy: policies.TFPolicy) -> policies.TFPolicy:
        """Returns the policy that collects, which adds noise."""
        policy = super().with_noise(policy)
        if self.ou_stddev:
            policy = policies.OUNoisePolicy(
                policy,
                ou_stddev=self.ou_stddev,
                ou_damping=self.ou_damping,
                seed=self.seed,
                scaled_to_spec=True,
                reset_at_episode_start=True,
            )
        return policy


class WithBins(off_policy.Bins, mixins.Targets, ContinuousActor):
    """The base of the algorithms whose critics predict numbers, or bins."""

    def make_critic(self, **arguments: Any) -> networks.Network:
        """Makes the ensemble of critics; see `ContinuousActor.make_critic`."""
        return super().make_critic(num_quantiles=self.value_bins or None, **arguments)


class SAC(off_policy.Memory, mixins.Encoder, WithBins):
    """SAC: a tanh-squashed normal policy, and critics (Haarnoja et al., 2018)."""

    name = "sac"
    title = "SAC"
    agent_name = "SacAgent"
    without_lstm: ClassVar[dict[str, Any]] = {
        **off_policy.Memory.without_lstm,
        "num_critics": 2,
        "num_min": 0,
        "gsde_sample_freq": 0,
    }

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor and the critics, perhaps with LSTMs."""
        if not self.lstm_size:
            return super().make_networks()
        actor = networks.ActorDistributionRnnNetwork(
            self.actor_spec,
            self.environment.action_spec(),
            continuous_projection_net=self.projection(),
            **self.lstm_arguments(self.actor_fc_layer_params),
        )
        critic = self.make_lstm_critic(self.critic_fc_layer_params)
        return {"critic_network": critic, "actor_network": actor}


class REDQ(mixins.Encoder, WithBins):
    """REDQ: SAC with ten critics, of which a target uses two (Chen et al., 2021)."""

    name = "redq"
    relative = "sac"
    title = "REDQ"
    agent_name = "SacAgent"

    num_critics: int = 10
    num_min: int = 2
    train_steps_per_iteration: int = 20


class DroQ(WithBins):
    """DroQ: REDQ with two critics that have dropout (Hiraoka et al., 2022)."""

    name = "droq"
    relative = "sac"
    title = "DroQ"
    agent_name = "DroqAgent"

    num_min: int = 2
    train_steps_per_iteration: int = 20
    actor_update_period: int = 20

    dropout: float = field(
        "Rate of dropout in the critics' hidden layers.", BELOW_1, default=0.01
    )

    def make_critic(self, **arguments: Any) -> networks.Network:
        """Makes the critics, with dropout and layer normalization."""
        return super().make_critic(dropout=self.dropout, layer_norm=True, **arguments)


class TQC(mixins.Quantiles, mixins.Encoder, mixins.Targets, ContinuousActor):
    """TQC: targets drop the critics' largest quantiles (Kuznetsov et al., 2020)."""

    name = "tqc"
    relative = "sac"
    title = "TQC"
    agent_name = "TqcAgent"

    num_quantiles: int = 25
    num_dropped_quantiles: int = field(
        "Largest quantiles dropped for each critic.", SIZE_OR_0, default=2
    )

    def make_critic(self, **arguments: Any) -> networks.Network:
        """Makes the ensemble of critics, which predict quantiles."""
        return super().make_critic(num_quantiles=self.num_quantiles, **arguments)

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "num_dropped_quantiles": self.num_dropped_quantiles,
        }


class CrossQ(ContinuousActor):
    """CrossQ: SAC without target networks, normalized (Bhatt et al., 2024)."""

    name = "crossq"
    relative = "sac"
    title = "CrossQ"
    agent_name = "CrossQAgent"

    critic_fc_layer_params: Sequence[int] = (256, 256)
    actor_learning_rate: float = 1e-3
    critic_learning_rate: float = 1e-3
    actor_update_period: int = 3

    adam_beta_1: float = field(
        "Decay of the mean gradients in the actor's and the critics' Adam.",
        BELOW_1,
        default=0.5,
    )
    renorm_momentum: float = field(
        "Share of the running statistics that an update keeps.",
        FRACTION,
        default=0.99,
    )
    renorm_warm_up: int = field(
        "Updates with plain batch normalization.", SIZE_OR_0, default=100_000
    )

    def body_arguments(self) -> dict[str, Any]:
        """Returns the networks' arguments for their normalized hidden layers."""
        body = functools.partial(
            networks.layers.bodies.batch_renormed,
            momentum=self.renorm_momentum,
            warm_up=self.renorm_warm_up,
        )
        return {"body": body}

    def adam_arguments(self) -> dict[str, float]:
        """Returns arguments of the actor's and the critics' Adam."""
        return {**super().adam_arguments(), "beta_1": self.adam_beta_1}


class DiscreteSAC(mixins.Targets, EntropyRegularized):
    """Discrete SAC: a categorical policy, and two Q-networks (Christodoulou, 2019).

    Almost no entropy is left in a policy that balances CartPole's pole for 500 steps,
    so the target is far below the published 0.98 of the uniform policy's.
    """

    name = "discrete_sac"
    title = "Discrete SAC"
    agent_name = "DiscreteSacAgent"
    takes_masks = True
    actions = "discrete"

    num_iterations: int = 49_000
    initial_collect_steps: int = 1_000
    train_steps_per_iteration: int = 2
    replay_capacity: int = 50_000
    final_learning_rate: float | None = 0.0
    target_update_tau: float = 0.02
    eval_interval: int = 2_000

    target_entropy_fraction: float = live(
        "Target entropy, as a share of the largest entropy.",
        FRACTION,
        default=0.2,
        needs=("alpha_learning_rate", True),
    )

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor and the Q-network, which the agent copies."""
        critic = parts.q_network(self, self.critic_fc_layer_params)
        actor = parts.stochastic_actor(self, self.actor_fc_layer_params)
        return {"critic_network": critic, "actor_network": actor}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        spec = self.environment.action_spec()
        num_actions = spec.maximum - spec.minimum + 1
        return {
            **super().agent_arguments(),
            "target_entropy": parts.product(
                self.target_entropy_fraction, math.log(num_actions)
            ),
        }
