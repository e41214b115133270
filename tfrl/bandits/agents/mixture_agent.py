"""Agents that mix several agents, each of which learns from its own rows."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.bandits.agents import bandit_agent
from tfrl.bandits.policies import mixture_policy
from tfrl.trajectories import trajectory
from tfrl.trajectories.time_step import StepType


class MixtureAgent(bandit_agent.BanditAgent):
    """Draws an agent for each row, and trains each agent on the rows that it chose.

    For an agent the rows of the others are boundaries, so all agents train in one
    program with the whole batch.
    """

    def __init__(
        self,
        mixture_distribution: Any,
        agents: Sequence[tf_agent.TFAgent],
        name: str | None = None,
        *,
        emit_log_probability: bool = False,
        train_step_counter: tf.Variable | None = None,
        seed: int | None = None,
    ) -> None:
        """Makes the policy.

        Args:
          mixture_distribution: A `tfp.distributions.Categorical` over the agents.
          agents: Agents of bandits with the same specs, also of the policies' infos.
          emit_log_probability: See `MixturePolicy`.

        Raises:
          ValueError: The agents differ.
        """
        policy = mixture_policy.MixturePolicy(
            mixture_distribution,
            [agent.collect_policy for agent in agents],
            emit_log_probability=emit_log_probability,
            seed=seed,
        )
        mixture_policy.check_equal(agents, ("training_data_spec",))
        observation = agents[0].training_data_spec.observation
        super().__init__(
            policy,
            training_data_spec=policy.trajectory_spec._replace(observation=observation),
            train_step_counter=train_step_counter,
            name=name,
        )
        self._agents = tuple(agents)
        self._mixture_distribution = mixture_distribution

    @property
    def agents(self) -> tuple[tf_agent.TFAgent, ...]:
        """The agents that are mixed."""
        return self._agents

    @abc.abstractmethod
    def _update_mixture_distribution(
        self, experience: Any, weights: tf.Tensor | None = None
    ) -> None:
        """Changes the distribution of the agents.

        Args:
          experience: The experience of `train`.
          weights: The weights of `train`, if there are some.
        """

    def _initialize(self) -> None:
        for agent in self._agents:
            agent.initialize()

    def _train(
        self, experience: Any, weights: tf.Tensor | None = None
    ) -> tf_agent.LossInfo:
        losses = [
            agent.train(own, weights).loss for agent, own in self._divided(experience)
        ]
        # A subclass need not know weights, as in TF-Agents.
        given = {} if weights is None else {"weights": weights}
        self._update_mixture_distribution(experience, **given)
        self._count(*losses)
        return tf_agent.LossInfo(tf.add_n(losses), extra=())

    def _loss(
        self,
        experience: Any,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf_agent.LossInfo:
        """Returns the sum of the agents' losses."""
        losses = [
            agent.loss(own, weights, training).loss
            for agent, own in self._divided(experience)
        ]
        return tf_agent.LossInfo(tf.add_n(losses), extra=())

    def _chosen_features(self, policy_info: Any) -> Any:
        return policy_info[mixture_policy.SUBPOLICY_INFO].chosen_arm_features

    def _divided(
        self, experience: Any
    ) -> Iterator[tuple[tf_agent.TFAgent, trajectory.Trajectory]]:
        """Yields the agents, each with its experience."""
        experience = self._as_frames(experience)
        info = experience.policy_info
        choice = info[mixture_policy.MIXTURE_AGENT_ID]
        for k, agent in enumerate(self._agents):
            is_own = choice == k
            step_type = tf.where(is_own, experience.step_type, StepType.LAST)
            next_type = tf.where(is_own, experience.next_step_type, StepType.FIRST)
            own = info[mixture_policy.SUBPOLICY_INFO]
            yield (
                agent,
                experience._replace(
                    policy_info=own, step_type=step_type, next_step_type=next_type
                ),
            )
