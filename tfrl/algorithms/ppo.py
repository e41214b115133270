"""`PPO` (Schulman et al., 2017) and `A2C` (Mnih et al., 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfrl import agents, networks, utils
from tfrl.algorithms import mixins, on_policy, parts
from tfrl.algorithms.settings import (
    FROM_0,
    SIZE_OR_0,
    check_layers,
    field,
    final,
    live,
    number,
    remedy_for,
)


class ActorCritic(
    on_policy.PolicyGradient, mixins.StateDependentNoise, on_policy.OnPolicy
):
    """The base of the algorithms of this module: an actor and a critic."""

    lstm_size: int = field(
        "Units of an LSTM after the hidden layers; 0: no LSTM.", SIZE_OR_0, default=0
    )
    output_fc_layer_params: Sequence[int] = field(
        "Units of the hidden layers after the LSTM.",
        check_layers,
        default=(),
        needs=("lstm_size", True),
    )
    lstm_sequence_length: int = field(
        "Frames in a sequence for the LSTM; 0 uses whole rollouts.",
        SIZE_OR_0,
        default=0,
        needs=("lstm_size", True),
    )
    initial_log_stddev: float = live(
        "First log standard deviation of continuous actions.", number(), default=0.0
    )
    normalize_rewards: bool = field(
        "Divide rewards by the running deviation of returns.", default=False
    )
    normalize_advantages: bool = field(
        "Normalize the advantages in each minibatch.", default=True
    )

    def further_network_arguments(self) -> dict[str, Any]:
        """Returns the networks' arguments that only some algorithms have."""
        return {
            "lstm_size": (self.lstm_size,) if self.lstm_size else None,
            "output_fc_layer_params": self.output_fc_layer_params,
            "initial_log_stddev": self.initial_log_stddev,
            "state_dependent_noise": bool(self.gsde_sample_freq),
        }

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`.

        The loop computes advantages and repeats epochs, with minibatches.
        """
        reward_normalizer = None
        if self.normalize_rewards:
            reward_normalizer = utils.reward_normalizer.RewardNormalizer(
                self.environment.batch_size, self.gamma
            )
        return {
            **super().agent_arguments(),
            "normalize_advantages": self.normalize_advantages,
            "compute_value_and_advantage_in_train": False,
            "update_normalizers_in_train": False,
            "reward_normalizer": reward_normalizer,
            "exploration": self.with_noise if self.gsde_sample_freq else None,
        }

    def further_loop_arguments(self) -> dict[str, Any]:
        """Returns the loop's arguments that only some algorithms have."""
        return {"sequence_length": self.lstm_sequence_length or None}


class A2C(ActorCritic):
    """A2C: an actor and a critic, with one update per rollout (Mnih et al., 2016).

    By default the settings are rl-zoo3's for CartPole-v1, but with Adam instead of
    RMSprop, with a learning rate that falls to 0, and with a lambda of 0.95: with 1, 4
    of 64 seeds end below 475, with 0.95 two of 128.
    """

    name = "a2c"
    title = "A2C"
    agent_name = "A2CAgent"

    num_iterations: int = 12_500
    collect_steps_per_iteration: int = 5
    learning_rate: float = 7e-4
    normalize_advantages: bool = False
    eval_interval: int = 1_250
    log_interval: int = 250
    checkpoint_interval: int = 2_500


class PPO(ActorCritic):
    """PPO with clipping (Schulman et al., 2017).

    By default the settings are rl-zoo3's for 100,000 steps of CartPole-v1, with longer
    rollouts and a discount and a lambda nearer to 1: with rl-zoo3's own, 3 of 64 seeds
    do not learn to keep the cart on the track, and with these all 128 that were tried
    do.
    """

    name = "ppo"
    title = "PPO"
    agent_name = "PPOClipAgent"

    num_iterations: int = 98
    num_epochs: int = 20
    minibatch_size: int = 256
    eval_interval: int = 14
    log_interval: int = 2
    checkpoint_interval: int = 28

    target_kl: float = field(
        "A rollout's updates end above 1.5 times this KL; 0: no limit.",
        FROM_0,
        default=0.0,
    )
    clip_range: float = live(
        "Clip range of the ratio of new to old probabilities.",
        FROM_0,
        (0.1, 0.2, 0.3, 0.4),
        default=0.2,
    )
    final_clip_range: float | None = final("clip range", default=0.0)
    value_clip_range: float = field(
        "Clip range of the change of values; 0: unlimited.", FROM_0, default=0.0
    )

    rpo_alpha: float = field(
        "Noise on the means in updates, for continuous actions; 0.5 in RPO.",
        FROM_0,
        default=0.0,
    )

    rnd_coefficient: float = field(
        "Weight of RND's rewards for rarely seen observations; 0: none.",
        FROM_0,
        default=0.0,
    )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `ActorCritic.agent_arguments`."""
        clip_range = parts.schedule(
            self.clip_range, self.num_updates, self.final_clip_range
        )
        return {
            **super().agent_arguments(),
            "importance_ratio_clipping": clip_range,
            "value_clipping": self.value_clip_range or None,
            "rpo_alpha": self.rpo_alpha,
            "rnd": self.make_rnd() if self.rnd_coefficient else None,
            "num_epochs": 1,
            "use_gae": True,
            "use_td_lambda_return": True,
            "normalize_observations": False,
            "normalize_rewards": False,
        }

    def make_rnd(self) -> agents.ppo.rnd.RandomNetworkDistillation:
        """Makes the networks of RND; the predictor has one more layer.

        Raises:
          ValueError: There are no hidden layers.
        """
        observation_spec = self.environment.observation_spec()
        spec = agents.ppo.rnd.network_spec(observation_spec)
        layers = self.fc_layer_params
        if not layers:
            raise ValueError(
                "fc_layer_params: expected at least one layer with rnd_coefficient, "
                f"got {layers!r}; {remedy_for('fc_layer_params')}."
            )
        target, predictor = (
            networks.EncodingNetwork(
                spec,
                fc_layer_params=units,
                seed=self.seed + 2 + i,
                **parts.network_arguments(self, spec),
            )
            for i, units in enumerate([layers, (layers[0], *layers)])
        )
        return agents.ppo.rnd.RandomNetworkDistillation(
            target,
            predictor,
            self.rnd_coefficient,
            self.environment.batch_size,
            self.gamma,
            observation_spec,
        )

    def further_loop_arguments(self) -> dict[str, Any]:
        """Returns the loop's arguments that only some algorithms have."""
        return {**super().further_loop_arguments(), "target_kl": self.target_kl or None}
