"""The base class of agents with a Q-network and a target network."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.agents import normalization, target_networks, tf_agent
from tfrl.trajectories import time_step as ts
from tfrl.utils import variables

if TYPE_CHECKING:
    from tfrl.utils.tensor_normalizer import TensorNormalizer


class QNetworkAgent(tf_agent.TFAgent):
    """Base class that builds, applies and updates a Q-network and its target network.

    The constructor of a subclass calls `_build_networks`, then the constructor of this
    class, and then sets `_optimizer` and `_update_target`.
    """

    _q_network: Any
    _target_q_network: Any
    _optimizer: Any
    _update_target: Callable[[], Any]

    def _build_networks(
        self,
        q_network: Any,
        target_q_network: Any,
        observation_spec: Any,
        observation_and_action_constraint_splitter: Callable | None,
        observation_normalizer: TensorNormalizer | None,
    ) -> None:
        """Creates the variables of both networks and checks their outputs.

        The networks see the observations through the normalizer, if there is one.
        """
        self._observation_and_action_constraint_splitter = (
            observation_and_action_constraint_splitter
        )
        input_spec, _ = self._split(observation_spec)
        q_network, target_q_network = normalization.normalized_networks(
            observation_normalizer, input_spec, q_network, target_q_network
        )
        self._q_network, self._target_q_network = target_networks.with_target(
            q_network, target_q_network, "TargetQNetwork", input_spec
        )
        self._check_network_output(self._q_network, "q_network")
        self._check_network_output(self._target_q_network, "target_q_network")
        self._recurrent = bool(tf.nest.flatten(self._q_network.state_spec))

    @abc.abstractmethod
    def _check_network_output(self, net: Any, label: str) -> None:
        """Raises a ValueError unless the agent can use the output of the network."""

    def _get_target_updater(
        self, tau: float = 1.0, period: int = 1
    ) -> Callable[[], Any]:
        """Returns a callable that `train` calls after each update of the weights."""
        pairs = [(self._q_network, self._target_q_network)]
        return target_networks.make_updater(pairs, tau, period)

    def _initialize(self) -> None:
        target_networks.copy_weights([(self._q_network, self._target_q_network)])

    def _variables(self) -> list[tf.Variable]:
        return variables.as_tf_variables(
            [
                *self._q_network.variables,
                *self._target_q_network.variables,
                *self._optimizer.variables(),
                *getattr(self._update_target, "variables", tuple)(),
            ]
        )

    def _apply_network(
        self, network: Any, time_step: ts.TimeStep, training: bool = False
    ) -> tf.Tensor:
        """Returns a network's output, `[B, n]`, for a time step.

        The network sees the observation without the mask of valid actions.
        """
        observation, _ = self._split(time_step.observation)
        output, _ = network(
            observation, step_type=time_step.step_type, training=training
        )
        return output

    def _at_next_steps(self, output: tf.Tensor) -> tf.Tensor:
        """Returns the part of a network's output that belongs to the next steps.

        A recurrent network is unrolled over all steps, `[B, T, ...]`. The first of
        these is not a next step, so its output is dropped.
        """
        return output[:, 1:] if self._recurrent else output

    def _possible(self, q_values: tf.Tensor, time_step: ts.TimeStep) -> tf.Tensor:
        """Returns the values `[B, n]`, with the dtype's minimum for invalid actions."""
        _, mask = self._split(time_step.observation)
        if mask is None:
            return q_values
        return tf.where(tf.cast(mask, tf.bool), q_values, q_values.dtype.min)

    def _split(self, observation: Any) -> tuple[Any, Any]:
        """Returns the network's part of the observation, and the mask (or None)."""
        splitter = self._observation_and_action_constraint_splitter
        return (observation, None) if splitter is None else splitter(observation)
