"""`PQN`: Q-learning from rollouts, without replay (Gallici et al., 2024)."""

from __future__ import annotations

from typing import Any, ClassVar

from tfrl import networks
from tfrl.algorithms import on_policy, parts
from tfrl.algorithms.settings import (
    COUNT,
    EPSILONS,
    FRACTION,
    LAMBDAS,
    SIZE_OR_0,
    field,
    live,
)


class PQNSettings(on_policy.RolloutSettings):
    """The settings of PQN.

    By default they are CleanRL's for CartPole-v1, but with Adam instead of RAdam, and
    with a larger learning rate and a discount nearer to 1. These two were chosen on
    seeds from 100 up.
    """

    defaults: ClassVar = {
        "num_iterations": 976,
        "num_envs": 4,
        "num_epochs": 4,
        "minibatch_size": 128,
        "fc_layer_params": (120, 84),
        "gamma": 0.995,
        "gradient_clipping": 10.0,
        "eval_interval": 122,
        "log_interval": 20,
        "checkpoint_interval": 244,
    }

    num_action_bins: int = field(
        0, "Evenly spaced values of a continuous action to choose from.", SIZE_OR_0
    )
    lambda_value: float = live(
        0.65, "Lambda: 1 uses full returns, 0 one-step targets.", FRACTION, LAMBDAS
    )
    initial_epsilon: float = live(
        1.0, "First probability of a random action.", FRACTION
    )
    final_epsilon: float = live(
        0.05, "Last probability of a random action.", FRACTION, EPSILONS
    )
    epsilon_decay_iterations: int = field(
        488, "Iterations from the first to the last epsilon.", COUNT
    )


class PQN(on_policy.OnPolicy):
    """PQN: Q(lambda) from rollouts, with layer normalization (Gallici et al., 2024)."""

    Settings = PQNSettings
    name = "pqn"
    title = "PQN"
    agent_name = "PqnAgent"
    actions = "discrete"

    def make_networks(self) -> dict[str, Any]:
        """Makes the Q-network, which has layer normalization."""
        s = self.settings
        network = networks.QNetwork(
            self.observation_spec,
            self.environment.action_spec(),
            fc_layer_params=s.fc_layer_params,
            layer_norm=True,
            seed=s.seed,
            **parts.network_arguments(s, self.observation_spec),
        )
        return {"q_network": network}

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        s = self.settings
        rate = on_policy.annealed(
            s.learning_rate, s, self.num_iterations, is_annealed=s.anneal_learning_rate
        )
        epsilon = parts.decay(
            s.initial_epsilon,
            s.epsilon_decay_iterations * on_policy.updates_per_rollout(s),
            s.final_epsilon,
        )
        return {
            "optimizer": parts.adam(rate),
            "epsilon_greedy": epsilon,
            "gamma": s.gamma,
            "lambda_value": s.lambda_value,
            "gradient_clipping": s.gradient_clipping,
            "seed": s.seed,
            "observation_normalizer": parts.observation_normalizer(
                s, self.observation_spec
            ),
        }
