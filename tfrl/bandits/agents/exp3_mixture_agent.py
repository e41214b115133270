"""A mixture of agents whose shares follow their rewards, by Exp3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.bandits.agents import bandit_agent, mixture_agent
from tfrl.bandits.policies import mixture_policy
from tfrl.utils import number_checks


class Exp3MixtureVariableCollection(tf.Module):
    """The variables of the shares, without those of the agents."""

    def __init__(
        self,
        num_agents: int,
        reward_aggregates: Sequence[float] | None = None,
        inverse_temperature: float = 0.0,
    ) -> None:
        """Creates the variables.

        Args:
          num_agents: The number of agents.
          reward_aggregates: The first sums of rewards, one for each agent; None for 0.
          inverse_temperature: The first temperature. The name is TF-Agents'; the sums
            are divided by it.

        Raises:
          ValueError: There are not `num_agents` sums.
        """
        super().__init__()
        first = [0.0] * num_agents if reward_aggregates is None else reward_aggregates
        if len(first) != num_agents:
            raise ValueError(
                f"reward_aggregates: got {len(first)} numbers, expected {num_agents}, "
                "one for each agent; give as many."
            )
        self._sums = tf.Variable(first, False, dtype=tf.float32, name="sums")
        self._temperature = tf.Variable(
            inverse_temperature, False, dtype=tf.float32, name="temperature"
        )

    @property
    def reward_aggregates(self) -> tf.Variable:
        """The sums of rewards S of the agents, `[K]`."""
        return self._sums

    @property
    def inverse_temperature(self) -> tf.Variable:
        """The temperature T."""
        return self._temperature


class Exp3MixtureAgent(mixture_agent.MixtureAgent):
    """Draws agents by `softmax(S / T)`, with unbiased sums of their rewards S.

    An update with B rows adds `1 - (1 - r) / p` of the agent that a row belongs to, and
    1 for the others, to S, where p is the present share of the row's agent; then it
    multiplies S by `forgetting`. The temperature T is the larger of
    `max_inverse_temperature` and `sqrt(T^2 + B)`. Rewards are in [0, 1], and rows are
    those of the present shares. TF-Agents recommends `forgetting = 1 - 1 /
    max_inverse_temperature`.
    """

    def __init__(
        self,
        agents: Sequence[tf_agent.TFAgent],
        variable_collection: Exp3MixtureVariableCollection | None = None,
        forgetting: float = 0.999,
        max_inverse_temperature: float = 1000.0,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Makes the shares and the policy; see `MixtureAgent` for other arguments.

        Args:
          variable_collection: The state of the shares; None makes it.
          forgetting: How much of the sums an update keeps, from 0 to 1.
          max_inverse_temperature: The least temperature. The name is TF-Agents', whose
            agent does the same.

        Raises:
          ValueError: A number is out of its range, or the collection has another number
            of agents.
          TypeError: `variable_collection` is of another kind.
        """
        import tensorflow_probability as tfp

        number_checks.check_number("forgetting", forgetting, 0, 1, remedy="try 0.999")
        number_checks.check_number(
            "max_inverse_temperature",
            max_inverse_temperature,
            0,
            excludes_low=True,
            remedy="1000 is usual",
        )
        number = len(agents)
        variable_collection = bandit_agent.as_collection(
            variable_collection, Exp3MixtureVariableCollection, number
        )
        shape = variable_collection.reward_aggregates.shape
        if shape != [number]:
            raise ValueError(
                f"variable_collection: got one of {shape[0]} agents, expected {number},"
                " the number of agents; leave it out."
            )
        self._variable_collection = variable_collection
        self._forgetting = forgetting
        self._least_temperature = max_inverse_temperature
        self._logits = tf.Variable(tf.zeros([number]), trainable=False, name="logits")
        self._set_logits()
        shares = tfp.distributions.Categorical(logits=self._logits)
        super().__init__(shares, agents, name=name, **kwargs)

    def _set_logits(self) -> None:
        sums = self._variable_collection.reward_aggregates
        temperature = tf.maximum(
            self._variable_collection.inverse_temperature, self._least_temperature
        )
        self._logits.assign(sums / temperature)

    def _update_mixture_distribution(
        self, experience: Any, weights: tf.Tensor | None = None
    ) -> None:
        rows = self._all_rows(experience, weights)
        reward = tf.cast(rows.reward, tf.float32)
        choice = rows.policy_info[mixture_policy.MIXTURE_AGENT_ID]
        sums, temperature = self._variable_collection.variables
        logs = tf.nn.log_softmax(self._logits)
        missing = rows.weights * (1 - reward) * tf.exp(-tf.gather(logs, choice))
        own = tf.one_hot(choice, self._logits.shape[0])
        change = 1 - tf.linalg.matvec(own, missing, transpose_a=True)
        sums.assign(self._forgetting * (sums + change))
        number = tf.reduce_sum(rows.weights)
        temperature.assign(
            tf.maximum(
                self._least_temperature, tf.sqrt(tf.square(temperature) + number)
            )
        )
        self._set_logits()
