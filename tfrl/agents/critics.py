"""Functions of critics: their values and errors, and means of losses.

Critics are networks of pairs of observations and actions. Every loss is a mean over the
`B` examples in which masked transitions (boundaries, and steps before a cut) count as
0, so that they change no weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl import losses
from tfrl.agents import updates
from tfrl.trajectories import time_step as ts
from tfrl.utils.random_numbers import seeds

if TYPE_CHECKING:
    from tfrl.typing import types


def outputs(network: Any, time_step: ts.TimeStep, training: bool = False) -> Any:
    """Returns a network's outputs for embedded time steps, `[B]` or `[B, T]`."""
    output, _ = network(
        time_step.observation, step_type=time_step.step_type, training=training
    )
    return output


def values(
    critic: types.Network,
    time_step: ts.TimeStep,
    action: types.NestedTensor,
    training: bool = False,
) -> Any:
    """Returns a critic's values of embedded time steps, `[B]` or `[B, T]`.

    The values of an ensemble with outputs `[B, N, ...]` are `[N, B, ...]`.
    """
    value, _ = critic(
        (time_step.observation, action),
        step_type=time_step.step_type,
        training=training,
    )
    outer_rank = time_step.step_type.shape.rank
    if not tf.is_tensor(value) or value.shape.rank == outer_rank:
        return value
    rest = [i for i in range(value.shape.rank) if i != outer_rank]
    return tf.transpose(value, [outer_rank, *rest])


def seeds_of(
    nest: types.NestedTensorSpec | types.NestedDistribution, seed: tf.Tensor
) -> list[tf.Tensor]:
    """Returns a seed for each leaf of a nest; the seed itself for a single leaf."""
    number = len(tf.nest.flatten(nest))
    return [seed] if number == 1 else seeds.split_seed(seed, number)


def mean(
    loss: tf.Tensor, batch: updates.Batch, network: types.Network | None = None
) -> tf.Tensor:
    """Returns the mean of the examples' losses, with 0 for masked transitions.

    Args:
      loss: The losses, `[B]` or `[B, T - 1]`.
      batch: A batch of `Transitions`.
      network: A network whose regularisation losses are added, or None.
    """
    return losses.aggregate_losses(
        batch.data.per_example(loss),
        batch.weights,
        regularization_loss=None if network is None else network.losses,
    ).total_loss


def counted(batch: updates.Batch) -> tf.Tensor:
    """Returns whether each transition counts in statistics, `[B]` or `[B, T - 1]`.

    Masked transitions and those of weight 0 do not.

    Args:
      batch: A batch of `Transitions`.
    """
    valid: tf.Tensor = batch.data.valid
    if batch.weights is None:
        return valid
    has_weight = tf.convert_to_tensor(batch.weights) != 0
    if has_weight.shape.rank == 1 and valid.shape.rank == 2:
        has_weight = has_weight[:, tf.newaxis]
    return valid & has_weight


def td_errors(
    targets: tf.Tensor, predictions: tf.Tensor, loss_fn: types.LossFn
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the loss and the error of each transition.

    Args:
      targets: The targets, `[B]` or `[B, T - 1]`.
      predictions: A critic's values, like `targets`.
      loss_fn: A loss of (targets, predictions), element by element.
    """
    return loss_fn(targets, predictions), targets - predictions


def members_of(predictions: Any, like: tf.Tensor) -> Sequence[Any]:
    """Returns the values of each member of an ensemble, or of the only critic."""
    if tf.is_tensor(predictions) and predictions.shape.rank > like.shape.rank:
        members: list[tf.Tensor] = tf.unstack(predictions)
        return members
    return [predictions]


def policy_gradient_loss(
    actions: types.NestedTensor,
    values_of: Callable[[types.NestedTensor], tf.Tensor],
    is_last: tf.Tensor,
    dqda_clipping: float | None,
    clip_norm: bool = False,
) -> tf.Tensor:
    """Returns a loss whose gradient is -dQ/da da/dtheta, `[B]` or `[B, T]`.

    Args:
      actions: The nest of a deterministic actor's actions.
      values_of: A function of actions that returns their values.
      is_last: Booleans; where true, a value does not count.
      dqda_clipping: See `losses.deterministic_policy_gradient`.
      clip_norm: See `losses.deterministic_policy_gradient`.
    """
    with tf.GradientTape() as tape:
        tape.watch(actions)
        q_values = values_of(actions)
        # A recurrent critic's later values depend on earlier actions.
        counted = tf.where(is_last, 0.0, q_values)
    return losses.deterministic_policy_gradient(
        q_values, actions, tape.gradient(counted, actions), dqda_clipping, clip_norm
    )


def check_gives_numbers(critic: types.Network) -> None:
    """Raises a ValueError unless a critic's output is one float per example.

    Args:
      critic: A built `Network`.
    """
    spec = critic.create_variables()
    if not (
        isinstance(spec, tf.TensorSpec)
        and spec.shape.rank == 0
        and spec.dtype.is_floating
    ):
        raise ValueError(
            f"critic network {critic.name!r}: expected one float for each pair of "
            f"observation and action, shape [B], got {spec}; use a CriticNetwork, "
            "or squeeze the last dimension."
        )


def all_values(
    critics: Sequence[types.Network],
    time_step: ts.TimeStep,
    action: types.NestedTensor,
    training: bool = False,
    loss_fn: types.LossFn | None = None,
) -> tf.Tensor:
    """Returns the values of several critics, or of one ensemble, `[N, B]`.

    Args:
      critics: The critics, or an ensemble.
      time_step: Embedded time steps, `[B]` or `[B, T]`.
      action: The actions.
      training: Whether dropout is on.
      loss_fn: The critics' loss; an `HlGauss` turns logits `[N, B, K]` into values.
    """
    each = [values(critic, time_step, action, training) for critic in critics]
    found = tf.stack(each) if len(each) > 1 else each[0]
    return loss_fn.value(found) if isinstance(loss_fn, losses.HlGauss) else found


def check_ensemble(critic: types.Network, loss_fn: types.LossFn | None) -> bool:
    """Returns whether the outputs are an ensemble's, `[B, N]`; logits for an `HlGauss`.

    Args:
      critic: A built `Network`.
      loss_fn: The critics' loss.

    Raises:
      ValueError: The loss is an `HlGauss`, and the outputs are not logits `[B, N, K]`.
    """
    spec = critic.create_variables()
    rank = spec.shape.rank if isinstance(spec, tf.TensorSpec) else None
    if not isinstance(loss_fn, losses.HlGauss):
        return rank == 1
    if rank != 2 or spec.shape[1] != loss_fn.num_bins:
        raise ValueError(
            f"critic network {critic.name!r}: expected the logits of several critics, "
            f"shape [B, N, {loss_fn.num_bins}], since td_errors_loss_fn is an HlGauss, "
            f"got {spec}; use a CriticEnsembleNetwork with num_quantiles="
            f"{loss_fn.num_bins}."
        )
    return True
