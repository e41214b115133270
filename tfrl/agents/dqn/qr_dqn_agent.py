"""QR-DQN: DQN with quantiles of the return.

The network predicts N quantiles theta_i(s, a) of the return at the fractions
tau_i = (i + 1/2) / N, and the value of an action is their mean. The loss is the
quantile Huber loss of

    u_ij = r + gamma * d * theta_j(s', a*) - theta_i(s, a),

summed over i and averaged over j, where a* has the highest value of the target network,
or with `double_q` of the online network. Dabney et al., "Distributional reinforcement
learning with quantile regression" (2018, arXiv:1710.10044), algorithm 1.

>>> import keras
>>> import tensorflow as tf
>>> from tfrl.agents import QrDqnAgent
>>> from tfrl.networks import QuantileQNetwork
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([4], tf.float32)
>>> action_spec = BoundedTensorSpec([], tf.int64, 0, 1)
>>> agent = QrDqnAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     QuantileQNetwork(observation_spec, action_spec, num_quantiles=10),
...     keras.optimizers.Adam(1e-3),
...     gamma=0.99,
... )
>>> agent.train_sequence_length
2
"""

from __future__ import annotations

from typing import Any, Unpack

import tensorflow as tf

from tfrl import losses
from tfrl.agents import checks
from tfrl.agents import transitions as transitions_lib
from tfrl.agents.dqn import dqn_agent
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import number_checks


class QrDqnAgent(dqn_agent.DqnAgent):
    """A DQN agent whose network predicts quantiles of the return."""

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        q_network: types.Network | types.Layer,
        optimizer: types.Optimizer | None,
        *,
        double_q: bool = False,
        huber_param: float = 1.0,
        **settings: Unpack[dqn_agent.DqnSettings],
    ) -> None:
        """Builds the target network and the policies.

        Args:
          time_step_spec: See `DqnAgent`.
          action_spec: See `DqnAgent`.
          q_network: A `Network` (or Keras layer) that maps observations to quantiles
            `[B, n, N]`, such as a `QuantileQNetwork`.
          optimizer: See `DqnAgent`.
          double_q: Whether the online network chooses the next action.
          huber_param: The error at which the Huber loss becomes linear; 0 takes
            absolute errors.
          **settings: The optional arguments of `DqnAgent`, except for
            `td_errors_loss_fn`.

        Raises:
          ValueError: The network's output is not `[B, n, N]`, or an argument of
            `DqnAgent` is wrong or has no meaning here.
        """
        checks.check_no_td_loss(
            settings.get("td_errors_loss_fn"),
            type(self).__name__,
            "the quantile Huber loss",
        )
        number_checks.check_number(
            "huber_param", huber_param, 0, remedy="the paper takes 1 or 0"
        )
        self._double_q = double_q
        self._huber_param = huber_param
        super().__init__(time_step_spec, action_spec, q_network, optimizer, **settings)

    def _check_network_output(self, net: Any, label: str) -> None:
        checks.check_numbers_per_action(
            net.create_variables(), label, "QuantileQNetwork"
        )
        super()._check_network_output(net, label)

    def _values_of(self, network_output: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(network_output, axis=-1)

    def _td_error(
        self, predictions: tf.Tensor, transitions: transitions_lib.Transitions
    ) -> tuple[tf.Tensor, tf.Tensor]:
        following = self._next_output(transitions)
        ones = tf.ones_like(following)
        targets = losses.td_target(
            transitions.reward[..., tf.newaxis] * ones,
            transitions.discount[..., tf.newaxis] * ones,
            following,
        )
        loss = losses.quantile_huber_loss(
            predictions, targets, self._huber_param, self._levels(predictions)
        )
        errors = self._values_of(targets) - self._values_of(predictions)
        return tf.reduce_sum(loss, axis=-1), errors

    def _levels(self, predictions: tf.Tensor) -> tf.Tensor | None:
        """Returns the fractions of the predicted quantiles; None if evenly spaced."""
        del predictions
        return None
