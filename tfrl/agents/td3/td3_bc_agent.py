"""TD3 with behavioural cloning (TD3+BC), for recorded experience.

It is TD3 (see `agents.td3.td3_agent`), whose actor mu minimises, for each recorded pair
(s, a),

    |mu(s) - a|^2 - alpha * Q_1(s, mu(s)) / mean |Q_1(s, mu(s))|

where |.|^2 is the mean over the dimensions of actions scaled to [-1, 1], and the
denominator is the batch's mean, without a gradient. Fujimoto and Gu, "A minimalist
approach to offline reinforcement learning" (2021, arXiv:2106.06860), equations 4 and 5,
with the denominator of the authors' code: the paper's has the recorded actions.

>>> import keras
>>> import tensorflow as tf
>>> from tfrl import networks
>>> from tfrl.agents.td3 import Td3BcAgent
>>> from tfrl.specs import BoundedTensorSpec
>>> from tfrl.trajectories import time_step
>>> observation_spec = tf.TensorSpec([3], tf.float32)
>>> action_spec = BoundedTensorSpec([1], tf.float32, -2, 2)
>>> specs = (observation_spec, action_spec)
>>> agent = Td3BcAgent(
...     time_step.time_step_spec(observation_spec),
...     action_spec,
...     networks.ActorNetwork(*specs, (64, 64)),
...     networks.CriticNetwork(specs, joint_fc_layer_params=(64, 64)),
...     actor_optimizer=keras.optimizers.Adam(3e-4),
...     critic_optimizer=keras.optimizers.Adam(3e-4),
...     actor_update_period=2,
...     target_update_period=2,
...     target_update_tau=0.005,
...     gamma=0.99,
... )
>>> agent.initialize()
"""

from __future__ import annotations

from typing import Any, Unpack

import tensorflow as tf

from tfrl import losses
from tfrl.agents import critics, updates
from tfrl.agents.td3 import td3_agent
from tfrl.compilation import replicas
from tfrl.losses import masking
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import actions as actions_lib
from tfrl.utils import number_checks


class Td3BcAgent(td3_agent.Td3Agent):
    """A TD3+BC agent."""

    _takes_bins = False

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        actor_network: types.Network | types.Layer,
        critic_network: types.Network | types.Layer,
        actor_optimizer: types.Optimizer | None,
        critic_optimizer: types.Optimizer | None,
        *,
        alpha: float = 2.5,
        **settings: Unpack[td3_agent.Td3Settings],
    ) -> None:
        """Builds the second critic, the target networks and the policies.

        `Td3Agent`, `TdOptions` and `AgentOptions` explain the arguments that are not
        listed here.

        Args:
          alpha: The weight of the values, relative to the distance from the recorded
            actions; 0 clones them.
          **settings: Further arguments of `Td3Agent`, with its defaults.

        Raises:
          ValueError: `alpha` is negative, or an argument of `Td3Agent` is wrong.
          NotImplementedError: N-step updates with a recurrent network.
        """
        number_checks.check_number("alpha", alpha, 0.0, remedy="2.5 is usual")
        super().__init__(
            time_step_spec,
            action_spec,
            actor_network,
            critic_network,
            actor_optimizer,
            critic_optimizer,
            **settings,
        )
        self._alpha = alpha

    def _actor_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `|mu(s) - a|^2 - alpha Q_1(s, mu(s)) / mean |Q_1|`."""
        time_step = batch.data.time_step
        actions = critics.outputs(self._actor_network, time_step, batch.training)
        values = self._q_values(time_step, actions)
        distance = squared_distances(self.action_spec, actions, batch.data.action)
        loss = losses.cloned_policy_gradient(
            values,
            distance / actions_lib.num_components(self.action_spec),
            mean_size(values, critics.counted(batch)),
            self._alpha,
        )
        return critics.mean(loss, batch, self._actor_network), {}


def squared_distances(action_spec: Any, actions: Any, others: Any) -> tf.Tensor:
    """Returns the squared distances of actions that are scaled to [-1, 1].

    Args:
      action_spec: A nest of bounded float specs.
      actions: The nest of actions, `[B, ...]` or `[B, T, ...]`.
      others: Like `actions`.

    Returns:
      The sums over all components, `[B]` or `[B, T]`.
    """
    _, magnitudes = actions_lib.spec_means_and_magnitudes(action_spec)
    total = tf.constant(0.0)
    for spec, action, other, magnitude in zip(
        *map(tf.nest.flatten, (action_spec, actions, others, magnitudes)), strict=True
    ):
        square = tf.square((action - other) / tf.cast(magnitude, action.dtype))
        inner = list(range(square.shape.rank - spec.shape.rank, square.shape.rank))
        total += tf.cast(tf.reduce_sum(square, inner), tf.float32)
    return total


def mean_size(values: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
    """Returns the mean of the sizes of values that count, without gradient.

    In the replicas of a `tf.distribute` strategy, the values of all replicas count.

    Args:
      values: The values, `[B]` or `[B, T]`.
      counts: Whether each counts, like `values`.
    """
    sizes = masking.masked(tf.abs(tf.stop_gradient(values)), counts)
    shares = tf.cast(counts, sizes.dtype)
    total, share = replicas.mean_over_replicas(
        [tf.reduce_mean(sizes), tf.reduce_mean(shares)]
    )
    return tf.math.divide_no_nan(total, share)
