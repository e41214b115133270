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
from tfrl.algorithms import off_policy, parts, spaces
from tfrl.algorithms.settings import (
    ABOVE_0,
    BELOW_1,
    COUNT,
    FINITE,
    FRACTION,
    FROM_0,
    SIZE,
    SIZE_OR_0,
    check_layers,
    decay_of_weights,
    encoder_kind,
    field,
    final_rate,
    live,
    rate,
)


class EntropyRegularized(off_policy.OffPolicy):
    """The base of the algorithms of this module."""

    num_iterations: int = 19_900
    initial_collect_steps: int = 100
    replay_capacity: int = 20_000

    actor_fc_layer_params: Sequence[int] = field(
        "Units of the actor's hidden layers.", check_layers, default=(64, 64)
    )
    critic_fc_layer_params: Sequence[int] = field(
        "Units of each critic's hidden layers.", check_layers, default=(64, 64)
    )
    actor_learning_rate: float = rate(default=1e-3)
    critic_learning_rate: float = rate(default=1e-3)
    alpha_learning_rate: float = rate(
        "Learning rate of Adam; 0 fixes the temperature.", default=1e-3
    )
    final_learning_rate: float | None = final_rate(default=None)
    initial_alpha: float = live("First temperature.", ABOVE_0, default=1.0)
    target_update_period: int = field(
        "Updates between steps of the target networks.", COUNT, default=1
    )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""

        def adam(rate: float, **arguments: float) -> Any:
            rate = parts.rate(rate, self.num_updates, self.final_learning_rate)
            return parts.adam(rate, **arguments)

        alpha_rate = self.alpha_learning_rate
        own = self.adam_arguments()
        return {
            "actor_optimizer": adam(self.actor_learning_rate, **own),
            "critic_optimizer": adam(self.critic_learning_rate, **own),
            "alpha_optimizer": adam(alpha_rate) if alpha_rate else None,
            "initial_log_alpha": math.log(self.initial_alpha),
            **self.target_arguments(),
            "gamma": self.gamma,
            "observation_normalizer": parts.observation_normalizer(
                self, self.observation_spec
            ),
            "n_step_update": self.n_step_update,
            "greedy_eval": True,
            "seed": self.seed,
        }

    def adam_arguments(self) -> dict[str, float]:
        """Returns arguments of the actor's and the critics' Adam."""
        return {}

    def target_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments for target networks."""
        return {
            "target_update_tau": self.target_update_tau,
            "target_update_period": self.target_update_period,
        }


class SAC(EntropyRegularized, off_policy.WithMemory, off_policy.WithBins):
    """SAC: a tanh-squashed normal policy, and critics (Haarnoja et al., 2018)."""

    name = "sac"
    title = "SAC"
    agent_name = "SacAgent"
    environment_name = "Pendulum-v1"
    actions = "continuous"
    without_lstm: ClassVar[dict[str, Any]] = {
        **off_policy.WithMemory.without_lstm,
        "num_critics": 2,
        "num_min": 0,
        "gsde_sample_freq": 0,
    }

    encoder: str = encoder_kind(default="mlp")
    weight_decay: float = decay_of_weights(default=0.0)
    num_critics: int = field("Critics in the ensemble; 10 in REDQ.", SIZE, default=2)
    num_min: int = field(
        "Critics in a target's minimum; 2 in REDQ, 0 uses all.", SIZE_OR_0, default=0
    )
    actor_update_period: int = field(
        "Critic updates for each of the actor and the temperature.", COUNT, default=1
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
    gsde_sample_freq: int = field(
        "Steps with one matrix of state-dependent noise; 0: off.", SIZE_OR_0, default=0
    )
    gsde_initial_log_std: float = field(
        "First log standard deviation of that noise.",
        FINITE,
        default=-3.0,
        needs=("gsde_sample_freq", True),
    )

    def check_together(self) -> None:
        """Checks the sizes of residual blocks, too."""
        super().check_together()
        parts.check_blocks(self, "actor_fc_layer_params", "critic_fc_layer_params")

    def adam_arguments(self) -> dict[str, float]:
        """Returns arguments of the actor's and the critics' Adam."""
        return {"weight_decay": self.weight_decay}

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor and the ensemble of critics."""
        specs = self.observation_spec, self.environment.action_spec()
        projection = parts.squashed_projection()
        if self.gsde_sample_freq:
            projection = functools.partial(
                networks.StateDependentNoiseProjectionNetwork,
                initial_log_std=self.gsde_initial_log_std,
            )
        if self.lstm_size:
            return {
                "critic_network": self.make_lstm_critic(self.critic_fc_layer_params),
                "actor_network": networks.ActorDistributionRnnNetwork(
                    *specs,
                    continuous_projection_net=projection,
                    **self.lstm_arguments(self.actor_fc_layer_params),
                ),
            }
        arguments = parts.network_arguments(self, self.observation_spec)
        actor = networks.ActorDistributionNetwork(
            *specs,
            fc_layer_params=self.actor_fc_layer_params,
            continuous_projection_net=projection,
            seed=self.seed,
            **{**arguments, **self.body_arguments()},
        )
        return {"critic_network": self.make_critic(), "actor_network": actor}

    def body_arguments(self) -> dict[str, Any]:
        """Returns the networks' arguments for their hidden layers."""
        return {}

    def make_critic(self, **arguments: Any) -> networks.Network:
        """Makes the ensemble of critics.

        Args:
          **arguments: Further arguments of `networks.CriticEnsembleNetwork`.
        """
        arguments.setdefault("num_quantiles", self.value_bins or None)
        return networks.CriticEnsembleNetwork(
            (self.observation_spec, self.environment.action_spec()),
            num_critics=self.num_critics,
            fc_layer_params=self.critic_fc_layer_params,
            seed=self.seed + 1,
            **arguments,
            **self.body_arguments(),
            **parts.network_arguments(self, self.observation_spec, for_critic=True),
        )

    @property
    def action_kind(self) -> spaces.Kind:
        """The kind of its actions; with state-dependent noise they form one vector."""
        return "vector" if self.gsde_sample_freq else "continuous"

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "target_entropy": parts.product(
                self.target_entropy_per_dimension,
                utils.actions.num_components(self.environment.action_spec()),
            ),
            "num_min": self.num_min or None,
            "actor_update_period": self.actor_update_period,
            "exploration": self.with_noise,
            **self.loss_of_bins(),
        }

    def with_noise(self, policy: policies.TFPolicy) -> policies.TFPolicy:
        """Returns the policy that collects, which adds noise."""
        if self.gsde_sample_freq:
            policy = policies.StateDependentNoisePolicy(
                policy, self.gsde_sample_freq, seed=self.seed
            )
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


class REDQ(SAC):
    """REDQ: SAC with ten critics, of which a target uses two (Chen et al., 2021)."""

    name = "redq"
    relative = "sac"
    title = "REDQ"
    without_settings = off_policy.LSTM_SETTINGS

    num_critics: int = 10
    num_min: int = 2
    train_steps_per_iteration: int = 20


class DroQ(SAC):
    """DroQ: REDQ with two critics that have dropout (Hiraoka et al., 2022)."""

    name = "droq"
    relative = "sac"
    title = "DroQ"
    agent_name = "DroqAgent"
    without_settings = off_policy.LSTM_SETTINGS | {"encoder"}

    num_min: int = 2
    train_steps_per_iteration: int = 20
    actor_update_period: int = 20

    dropout: float = field(
        "Rate of dropout in the critics' hidden layers.", BELOW_1, default=0.01
    )

    def make_critic(self, **arguments: Any) -> networks.Network:
        """Makes the critics, with dropout and layer normalization."""
        return super().make_critic(dropout=self.dropout, layer_norm=True, **arguments)


class TQC(SAC):
    """TQC: targets drop the critics' largest quantiles (Kuznetsov et al., 2020)."""

    name = "tqc"
    relative = "sac"
    title = "TQC"
    agent_name = "TqcAgent"
    without_settings = off_policy.LSTM_SETTINGS | off_policy.BIN_SETTINGS

    num_quantiles: int = field("Quantiles that a critic predicts.", SIZE, default=25)
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


class CrossQ(SAC):
    """CrossQ: SAC without target networks, normalized (Bhatt et al., 2024)."""

    name = "crossq"
    relative = "sac"
    title = "CrossQ"
    agent_name = "CrossQAgent"
    without_settings = off_policy.LSTM_SETTINGS | {
        *off_policy.BIN_SETTINGS,
        "target_update_tau",
        "target_update_period",
        "encoder",
    }

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

    def target_arguments(self) -> dict[str, Any]:
        """Returns nothing, since there are no target networks."""
        return {}


class DiscreteSAC(EntropyRegularized):
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
        specs = self.observation_spec, self.environment.action_spec()
        common = parts.network_arguments(self, self.observation_spec)
        return {
            "critic_network": networks.QNetwork(
                *specs,
                fc_layer_params=self.critic_fc_layer_params,
                seed=self.seed + 1,
                **common,
            ),
            "actor_network": networks.ActorDistributionNetwork(
                *specs,
                fc_layer_params=self.actor_fc_layer_params,
                seed=self.seed,
                **common,
            ),
        }

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
