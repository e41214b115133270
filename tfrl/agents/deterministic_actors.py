"""What agents with a deterministic actor share: DDPG, D4PG and TD3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl import losses
from tfrl.trajectories import time_step as ts

if TYPE_CHECKING:
    from tfrl.agents.actor_critic import ActorCriticAgent

REFUSED_OVERRIDES: Mapping[str, str] = {
    "critic_loss": (
        "override _td_error(predictions, transitions, next_values) or "
        "_compute_next_values(next_time_step, seed)"
    ),
    "actor_loss": "override _compute_actor_loss(time_step, seed, training)",
}


def next_values(
    self: ActorCriticAgent, next_time_step: ts.TimeStep, seed: tf.Tensor
) -> Any:
    """Returns the target critic's values of the target actor's actions.

    Args:
      self: The agent; this function is one of its methods.
      next_time_step: See `ActorCriticAgent._compute_next_values`.
      seed: Not used.
    """
    del seed
    actions = self._outputs(self._target_actor_network, next_time_step)
    return self._values(self._target_critic_networks[0], next_time_step, actions)


def policy_gradient_loss(
    actions: Any,
    values_of: Callable[[Any], tf.Tensor],
    is_last: tf.Tensor,
    dqda_clipping: float | None,
    clip_norm: bool = False,
) -> tf.Tensor:
    """Returns a loss whose gradient is -dQ/da da/dtheta, `[B]` or `[B, T]`.

    Args:
      actions: The nest of the actor's actions.
      values_of: A function of actions that returns their values.
      is_last: Booleans; where true, a value does not count.
      dqda_clipping: See `losses.deterministic_policy_gradient`.
      clip_norm: See there.
    """
    with tf.GradientTape() as tape:
        tape.watch(actions)
        values = values_of(actions)
        # A recurrent critic's later values depend on earlier actions.
        counted = tf.where(is_last, 0.0, values)
    return losses.deterministic_policy_gradient(
        values, actions, tape.gradient(counted, actions), dqda_clipping, clip_norm
    )
