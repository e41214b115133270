"""Losses of TD errors, as programs give them to agents: by element, or reduced.

Agents mask and weigh the loss of each transition. Keras's losses are means over the
last axis, and the losses of `tf.compat.v1.losses` are means over the whole batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrl.agents import checks
from tfrl.typing import types

# The code of functions that have been warned of, each with the agent's class.
_warned: set[tuple[Any, str]] = set()


def check(loss_fn: types.LossFn | None) -> None:
    """Raises a TypeError unless `loss_fn` is None or can be called with tensors."""
    if loss_fn is not None and (isinstance(loss_fn, type) or not callable(loss_fn)):
        raise TypeError(
            "td_errors_loss_fn: expected a function of (targets, predictions), or an "
            f"instance of keras.losses.Loss, got {loss_fn!r}; write "
            "keras.losses.Huber(), or tfrl.utils.common.element_wise_huber_loss."
        )


def per_transition(
    loss_fn: types.LossFn,
    targets: tf.Tensor,
    predictions: tf.Tensor,
    valid: tf.Tensor,
    agent: str = "",
) -> tf.Tensor:
    """Returns the loss of each transition, in the shape of `targets`.

    A loss of Keras, an object or a function, is applied to each transition by itself,
    whatever its reduction. If another function returns a single number for the batch,
    every transition gets the mean loss of the valid ones.

    Args:
      loss_fn: A loss of (targets, predictions).
      targets: The targets, `[B]` or `[B, T - 1]`.
      predictions: The predictions, like `targets`.
      valid: False where a transition is masked, like `targets`.
      agent: The name of the agent's class, which is warned for itself.

    Raises:
      TypeError: The result is no tensor.
      ValueError: The result has neither the shape of `targets` nor is it a number.

    Warns:
      UserWarning: The loss function reduces the batch to a number; once for each.
    """
    of_columns = _of_keras(loss_fn)
    if of_columns is None:
        loss = loss_fn(targets, predictions)
    else:
        columns = targets[..., tf.newaxis], predictions[..., tf.newaxis]
        loss = of_columns(*columns)
    if not tf.is_tensor(loss):
        raise TypeError(
            "td_errors_loss_fn: expected a function that returns a tensor, the loss of "
            f"each element, got {loss!r} of {_name_of(loss_fn)}; compute it from "
            "targets and predictions, which are tensors."
        )
    if of_columns is not None and loss.shape.rank == targets.shape.rank + 1:
        loss = tf.squeeze(loss, -1)
    if loss.shape.rank == 0:
        _warn_of_reduction(loss_fn, agent)
        return _of_batch(loss_fn, targets, predictions, valid)
    if loss.shape.rank != targets.shape.rank:
        raise ValueError(
            "td_errors_loss_fn: expected a loss for each element, shape "
            f"{targets.shape}, got shape {loss.shape}; do not reduce in it, for "
            "instance with tfrl.utils.common.element_wise_squared_loss."
        )
    return loss


def _of_keras(loss_fn: types.LossFn) -> Callable[..., tf.Tensor] | None:
    """Returns a function whose result is a mean over the last axis; None for others."""
    if hasattr(loss_fn, "call") and hasattr(loss_fn, "reduction"):
        of_columns: Callable[..., tf.Tensor] = loss_fn.call
        return of_columns
    package = str(getattr(loss_fn, "__module__", "")).partition(".")[0]
    return loss_fn if package in ("keras", "tf_keras") else None


def _of_batch(
    loss_fn: types.LossFn, targets: tf.Tensor, predictions: tf.Tensor, valid: tf.Tensor
) -> tf.Tensor:
    """Returns the mean loss of the valid transitions for each transition."""
    # Masked transitions have no error, and so do not count, except in the number of
    # transitions by which the loss function divides.
    loss = loss_fn(targets, tf.where(valid, predictions, targets))
    number = tf.cast(tf.size(valid), loss.dtype)
    mean = tf.math.divide_no_nan(
        loss * number, tf.reduce_sum(tf.cast(valid, loss.dtype))
    )
    return tf.broadcast_to(mean, tf.shape(targets))


def _name_of(loss_fn: types.LossFn) -> str:
    return str(getattr(loss_fn, "__name__", type(loss_fn).__name__))


def _warn_of_reduction(loss_fn: types.LossFn, agent: str) -> None:
    name = _name_of(loss_fn)
    # Many functions have one name, such as <lambda>.
    key = getattr(loss_fn, "__code__", name), agent
    if key in _warned:
        return
    _warned.add(key)
    checks.warn_user(
        f"td_errors_loss_fn: {name} returns one number for the whole batch, so every "
        "transition gets the mean loss of the batch. Masked transitions do not count "
        "in it. But the weights of examples, such as those of prioritized replay, "
        "cannot weigh them one by one: they multiply the mean loss by their own mean; "
        "and LossInfo.extra.td_loss is the same for every transition. "
        "tfrl.utils.common.element_wise_huber_loss, element_wise_squared_loss and "
        "keras.losses.Huber() return a loss for each transition."
    )
