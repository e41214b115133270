"""Conservative Q-learning on double DQN, for recorded experience of a discrete action.

It is double DQN (see `agents.dqn.dqn_agent`), whose loss has for each transition
(s, a, r, s') the further term

    alpha' * (log sum_b exp(Q(s, b)) - Q(s, a))

over all actions b. So, without evidence, no action has a value above the recorded ones.
Kumar et al., "Conservative Q-learning for offline reinforcement learning" (2020,
arXiv:2006.04779), equation 4.

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents import CqlDqnAgent
>>> from tfrl.networks import QNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> specs = tf.TensorSpec([4], tf.float32), BoundedTensorSpec([], tf.int32, 0, 1)
>>> agent = CqlDqnAgent(
...     time_step.time_step_spec(specs[0]),
...     specs[1],
...     QNetwork(*specs),
...     keras.optimizers.Adam(1e-3),
...     gamma=0.99,
...     target_update_tau=0.005,
... )
>>> agent.train_sequence_length
2
"""

from __future__ import annotations

from typing import Unpack

import tensorflow as tf

from tfrl import losses
from tfrl.agents import measures, updates
from tfrl.agents import transitions as transitions_lib
from tfrl.agents.dqn import dqn_agent
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks


class CqlDqnAgent(dqn_agent.DdqnAgent):
    """A CQL agent for one discrete action, based on double DQN.

    `td_loss` in `LossInfo.extra` has the penalty in it.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        q_network: types.Network | types.Layer,
        optimizer: types.Optimizer | None,
        *,
        cql_alpha: float = 1.0,
        **settings: Unpack[dqn_agent.DqnSettings],
    ) -> None:
        """Builds the target network and the policies.

        Args:
          time_step_spec: See `DqnAgent`.
          action_spec: See `DqnAgent`.
          q_network: See `DqnAgent`.
          optimizer: See `DqnAgent`.
          cql_alpha: The weight of the conservative penalty.
          **settings: The optional arguments of `DqnAgent`. The actions that
            `observation_and_action_constraint_splitter` masks are not in the penalty.

        Raises:
          ValueError: The weight is negative, or an argument of `DqnAgent` is wrong.
        """
        number_checks.check_number(
            "cql_alpha", cql_alpha, 0.0, remedy="1 is usual, and 0 is double DQN"
        )
        self._cql_alpha = cql_alpha
        super().__init__(time_step_spec, action_spec, q_network, optimizer, **settings)

    def _predictions(
        self, transitions: transitions_lib.Transitions, training: bool = False
    ) -> tf.Tensor:
        """Returns the values of all actions, `[B, n]`."""
        return self._apply_network(self._q_network, transitions.time_step, training)

    def _td_error(
        self, predictions: tf.Tensor, transitions: transitions_lib.Transitions
    ) -> tuple[tf.Tensor, tf.Tensor]:
        taken = losses.action_value(predictions, transitions.action)
        td_loss, td_error = super()._td_error(taken, transitions)
        penalty = self._penalty(predictions, transitions)
        return td_loss + self._cql_alpha * penalty, td_error

    def _penalty(
        self, values: tf.Tensor, transitions: transitions_lib.Transitions
    ) -> tf.Tensor:
        """Returns the conservative penalty of the values of all actions, `[B]`."""
        possible = self._possible(values, transitions.time_step)
        last = values.shape.rank - 1
        return losses.conservative_penalty(
            losses.action_value(values, transitions.action),
            tf.transpose(possible, [last, *range(last)]),
        )

    def _measure(self, batch: updates.Batch) -> dict[str, tf.Tensor]:
        """Returns `measures.of_values` of the actions taken, and `cql_loss`."""
        (part,) = self._parts
        _, details = part.compute(batch)
        transitions = self._transitions(batch.data)
        values, valid = self._predictions(transitions), transitions.valid
        taken = losses.action_value(values, transitions.action)
        penalty = self._penalty(values, transitions)
        return {
            **measures.of_values(taken, details["extra"].td_error, valid),
            "cql_loss": losses.masked_mean(penalty, valid),
        }
