"""`IMPALA`: actors with old weights, corrected by V-trace (Espeholt et al., 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfrl import agents, train
from tfrl.algorithms import algorithm, parts
from tfrl.algorithms.settings import (
    DISCOUNTS,
    ENTROPIES,
    ENVIRONMENTS,
    FRACTION,
    FROM_0,
    SIZE,
    check_layers,
    field,
    final_rate,
    gradient_norm,
    live,
    rate,
)


class IMPALA(algorithm.Algorithm):
    """IMPALA: an actor and a critic with V-trace (Espeholt et al., 2018)."""

    name = "impala"
    title = "IMPALA"
    agent_name = "ImpalaAgent"
    takes_masks = True

    num_iterations: int = 12_500
    activation: str = "tanh"
    eval_interval: int = 1_250
    log_interval: int = 250
    checkpoint_interval: int = 2_500

    num_envs: int = field(
        "Environments stepped together, by each actor.", ENVIRONMENTS, default=16
    )
    sequence_length: int = field(
        "Steps of each environment in an update.", SIZE, default=5
    )
    collect_update_period: int = field(
        "Updates between two copies of the weights for collection.", SIZE, default=4
    )
    fc_layer_params: Sequence[int] = field(
        "Units of the hidden layers of each network.", check_layers, default=(64, 64)
    )
    share_layers: bool = field(
        "Actor and critic share all layers before their outputs.", default=False
    )
    normalize_observations: bool = field(
        "Normalize observations by their running statistics.", default=False
    )
    learning_rate: float = rate(default=7e-4)
    final_learning_rate: float | None = final_rate(default=0.0)
    gamma: float = live("Discount per step.", FRACTION, DISCOUNTS, default=0.99)
    lambda_value: float = live(
        "Lambda of V-trace; 0 uses one-step targets.", FRACTION, default=1.0
    )
    entropy_regularization: float = live(
        "Weight of the policy's entropy in the loss.", FROM_0, ENTROPIES, default=0.01
    )
    value_loss_weight: float = live(
        "Weight of the squared error of the values.", FROM_0, default=0.5
    )
    max_abs_reward: float = field(
        "Size to which rewards are clipped; 0: unlimited.", FROM_0, default=0.0
    )
    max_gradient_norm: float = gradient_norm(default=0.5)

    @property
    def steps_per_iteration(self) -> int:
        """The environment steps of an iteration."""
        return self.sequence_length * self.num_envs

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor and the critic."""
        return parts.actor_and_critic(
            self,
            self.observation_spec,
            self.environment.action_spec(),
            fc_layer_params=self.fc_layer_params,
            share_layers=self.share_layers,
        )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        rate = parts.rate(
            self.learning_rate, self.schedule_iterations, self.final_learning_rate
        )
        return {
            "optimizer": parts.adam(rate, epsilon=1e-5),
            "discount_factor": self.gamma,
            "lambda_value": self.lambda_value,
            "entropy_regularization": self.entropy_regularization,
            "value_pred_loss_coef": self.value_loss_weight,
            "max_abs_reward": self.max_abs_reward or None,
            "gradient_clipping": self.max_gradient_norm or None,
            "collect_update_period": self.collect_update_period,
            "observation_normalizer": parts.observation_normalizer(
                self, self.observation_spec
            ),
            "seed": self.seed,
        }

    def make_loop(self, agent: agents.TFAgent) -> train.OnPolicyLoop:
        """Makes the loop; see `Algorithm.make_loop`.

        Raises:
          ValueError: There is a replay buffer.
        """
        self.refuse_replay()
        return train.OnPolicyLoop(
            self.environment,
            agent,
            collect_steps_per_iteration=self.sequence_length,
            seed=self.seed,
            jit_compile="auto" if self.jit_compile else False,
        )
