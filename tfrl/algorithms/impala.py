"""`IMPALA`: actors with old weights, corrected by V-trace (Espeholt et al., 2018)."""

from __future__ import annotations

from typing import Any, ClassVar

from tfrl import agents, train
from tfrl.algorithms import algorithm, parts
from tfrl.algorithms.settings import (
    DISCOUNTS,
    ENTROPIES,
    ENVIRONMENTS,
    FRACTION,
    FROM_0,
    SIZE,
    Settings,
    check_layers,
    field,
    live,
    number,
    rate,
)


class IMPALASettings(Settings):
    """The settings of IMPALA.

    With actors in processes, an update takes 16 sequences from any of their
    environments, the same number of steps.
    """

    defaults: ClassVar = {
        "num_iterations": 12_500,
        "activation": "tanh",
        "eval_interval": 1_250,
        "log_interval": 250,
        "checkpoint_interval": 2_500,
    }

    num_envs: int = field(
        16, "Environments stepped together, by each actor.", ENVIRONMENTS
    )
    sequence_length: int = field(5, "Steps of each environment in an update.", SIZE)
    collect_update_period: int = field(
        4, "Updates between two copies of the weights for collection.", SIZE
    )
    batch_size: int = field(16, "Sequences in an update, with --num_actors.", SIZE)
    max_queue_size: int = field(
        32, "Sequences that wait for the learner, with --num_actors.", SIZE
    )
    fc_layer_params: tuple[int, ...] = field(
        (64, 64), "Units of the hidden layers of each network.", check_layers
    )
    share_layers: bool = field(
        False, "Actor and critic share all layers before their outputs."
    )
    normalize_observations: bool = field(
        False, "Normalize observations by their running statistics."
    )
    learning_rate: float = rate(7e-4)
    anneal_learning_rate: bool = field(
        True, "Whether the learning rate falls linearly to 0."
    )
    gamma: float = live(0.99, "Discount per step.", FRACTION, DISCOUNTS)
    lambda_value: float = live(
        1.0, "Lambda of V-trace; 0 uses one-step targets.", FRACTION
    )
    entropy_regularization: float = live(
        0.01, "Weight of the policy's entropy in the loss.", FROM_0, ENTROPIES
    )
    value_loss_weight: float = live(
        0.5, "Weight of the squared error of the values.", FROM_0
    )
    max_abs_reward: float = field(
        0.0, "Size to which rewards are clipped; 0: unlimited.", FROM_0
    )
    gradient_clipping: float | None = field(
        0.5,
        "Largest norm of all gradients together.",
        number(low=0.0, excludes_low=True, optional=True),
    )


class IMPALA(algorithm.Algorithm):
    """IMPALA: an actor and a critic with V-trace (Espeholt et al., 2018)."""

    Settings = IMPALASettings
    name = "impala"
    title = "IMPALA"
    agent_name = "ImpalaAgent"

    def make_networks(self) -> dict[str, Any]:
        """Makes the actor and the critic."""
        return parts.actor_and_critic(
            self.settings, self.observation_spec, self.environment.action_spec()
        )

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        s = self.settings
        rate: Any = s.learning_rate
        if s.anneal_learning_rate:
            rate = parts.decay(rate, self.num_iterations, 0.0)
        return {
            "optimizer": parts.adam(rate, epsilon=1e-5),
            "discount_factor": s.gamma,
            "lambda_value": s.lambda_value,
            "entropy_regularization": s.entropy_regularization,
            "value_pred_loss_coef": s.value_loss_weight,
            "max_abs_reward": s.max_abs_reward or None,
            "gradient_clipping": s.gradient_clipping,
            "collect_update_period": s.collect_update_period,
            "observation_normalizer": parts.observation_normalizer(
                s, self.observation_spec
            ),
            "seed": s.seed,
        }

    def make_loop(self, agent: agents.TFAgent) -> train.OnPolicyLoop:
        """Makes the loop; see `Algorithm.make_loop`.

        Raises:
          ValueError: There is a replay buffer.
        """
        s = self.settings
        self.refuse_replay()
        return train.OnPolicyLoop(
            self.environment,
            agent,
            collect_steps_per_iteration=s.sequence_length,
            seed=s.seed,
            jit_compile="auto" if s.jit_compile else False,
        )
