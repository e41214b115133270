"""`IMPALA`: actors with old weights, corrected by V-trace (Espeholt et al., 2018)."""

from __future__ import annotations

from typing import Any

from tfrl import agents, train
from tfrl.algorithms import mixins, on_policy, parts
from tfrl.algorithms.settings import FRACTION, FROM_0, SIZE, field, live


class IMPALA(on_policy.PolicyGradient, mixins.Environments):
    """IMPALA: an actor and a critic with V-trace (Espeholt et al., 2018)."""

    name = "impala"
    title = "IMPALA"
    agent_name = "ImpalaAgent"

    num_iterations: int = 12_500
    num_envs: int = 16
    learning_rate: float = 7e-4
    entropy_regularization: float = 0.01
    eval_interval: int = 1_250
    log_interval: int = 250
    checkpoint_interval: int = 2_500

    sequence_length: int = field(
        "Steps of each environment in an update.", SIZE, default=5
    )
    collect_update_period: int = field(
        "Updates between two copies of the weights for collection.", SIZE, default=4
    )
    lambda_value: float = live(
        "Lambda of V-trace; 0 uses one-step targets.", FRACTION, default=1.0
    )
    max_abs_reward: float = field(
        "Size to which rewards are clipped; 0: unlimited.", FROM_0, default=0.0
    )

    @property
    def steps_per_iteration(self) -> int:
        """The environment steps of an iteration."""
        return self.sequence_length * self.num_envs

    def agent_arguments(self) -> dict[str, Any]:
        """Returns the agent's arguments; see `Algorithm.agent_arguments`."""
        return {
            **super().agent_arguments(),
            "max_abs_reward": self.max_abs_reward or None,
            "collect_update_period": self.collect_update_period,
        }

    def make_loop(self, agent: agents.TFAgent) -> train.OnPolicyLoop:
        """Makes the loop; see `Algorithm.make_loop` and `parts.on_policy_loop`."""
        return parts.on_policy_loop(self, agent, self.sequence_length)
