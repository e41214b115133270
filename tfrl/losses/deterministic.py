"""Computes the losses of deterministic actors and the targets of TD3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.losses.shapes import (
    check_broadcast,
    check_ranks,
    check_same_shape,
    check_scalars,
    shape_of,
)

if TYPE_CHECKING:
    from tfrl.typing import types


def deterministic_policy_gradient(
    q: types.TensorLike,
    action: types.TensorLike,
    dqda: types.TensorLike,
    dqda_clipping: float | None = None,
    clip_norm: bool = False,
) -> tf.Tensor:
    """Returns `-q`, with the gradient `-clip(dqda) da` along the actions alone.

    Silver et al., "Deterministic policy gradient algorithms", 2014, equation 9;
    Lillicrap et al., "Continuous control with deep reinforcement learning", 2016,
    equation 6. Without clipping this is the gradient of `-q(s, a)`.

    Args:
      q: The critic's values of the actions, `[B]` or `[B, T]`; no gradient flows into
        them.
      action: The nest of the actor's actions, `[B(, T), ...]`.
      dqda: The gradients of `q` with respect to the actions, like `action`.
      dqda_clipping: The largest absolute value of each element of the gradients; None
        does not clip.
      clip_norm: Whether `dqda_clipping` is the largest L2 norm of each action tensor's
        gradient instead.

    Raises:
      ValueError: The shapes of `action` do not begin with the shape of `q`, or the
        shapes of `dqda` differ from the shapes of `action`.
    """
    check_scalars(dqda_clipping=dqda_clipping)
    loss = -tf.stop_gradient(tf.convert_to_tensor(q))
    for a, gradient in zip(tf.nest.flatten(action), tf.nest.flatten(dqda), strict=True):
        outer = shape_of(a)[: loss.shape.rank]
        check_same_shape(q=loss, outer_dimensions_of_action=outer)
        check_same_shape(action=a, dqda=gradient)
        inner = list(range(loss.shape.rank, a.shape.rank))
        if dqda_clipping is not None:
            gradient = _clipped(gradient, dqda_clipping, inner if clip_norm else None)
        # The value is 0, and the gradient is the gradient of the policy.
        step = tf.stop_gradient(gradient) * (a - tf.stop_gradient(a))
        loss -= tf.cast(tf.reduce_sum(step, axis=inner), loss.dtype)
    return loss


def dpg(
    q_max: types.TensorLike,
    a_max: tf.Tensor,
    tape: tf.GradientTape,
    dqda_clipping: float | None = None,
    clip_norm: bool = False,
) -> tf.Tensor:
    """Returns `|clip(dq/da)|^2 / 2`, with the policy's gradient, as in Acme.

    `deterministic_policy_gradient` has the same gradient, and a more informative value.

    Args:
      q_max: The critic's values of the actions, `[B]` or `[B, 1]`.
      a_max: The actor's actions, `[B, A]`, which `tape` watches.
      tape: The tape under which `q_max` was computed; it is used once.
      dqda_clipping: See `deterministic_policy_gradient`.
      clip_norm: See `deterministic_policy_gradient`.

    Returns:
      The losses, `[B]`.

    Raises:
      ValueError: The values do not depend on the actions, the shapes do not fit, or
        `dqda_clipping` is not positive.
    """
    shape = shape_of(q_max)
    is_column = shape.rank == 2 and shape[1] == 1
    check_ranks((1, 2) if is_column else (1,), q_max=q_max)
    check_ranks((2,), a_max=a_max)
    check_same_shape(
        one_number_of_a_max=shape_of(a_max)[:-1],
        q_max=shape[:1] if is_column else shape,
    )
    check_scalars(dqda_clipping=dqda_clipping)
    if dqda_clipping is not None and dqda_clipping <= 0:
        raise ValueError(
            f"dqda_clipping: got {dqda_clipping}, expected a positive number; None "
            "does not clip."
        )
    dqda = tape.gradient(q_max, a_max)
    if dqda is None:
        raise ValueError(
            "q_max: got values that do not depend on a_max, expected the critic's "
            "values of these actions; watch a_max, and compute q_max under the tape."
        )
    if dqda_clipping is not None:
        dqda = _clipped(dqda, dqda_clipping, [-1] if clip_norm else None)
    values = tf.squeeze(q_max, axis=1) if is_column else q_max
    surrogate = deterministic_policy_gradient(values, a_max, dqda)
    half_square = tf.stop_gradient(0.5 * tf.reduce_sum(tf.square(dqda), axis=-1))
    return half_square + surrogate - tf.stop_gradient(surrogate)


def _clipped(gradient: Any, limit: float, axes: list[int] | None) -> tf.Tensor:
    """Clips each number, or the L2 norm over some axes."""
    if axes is None:
        return tf.clip_by_value(gradient, -limit, limit)
    norm = tf.sqrt(tf.reduce_sum(tf.square(gradient), axis=axes, keepdims=True))
    return gradient * tf.math.divide_no_nan(limit, tf.maximum(norm, limit))


def clipped_double_q(values: Sequence[types.TensorLike]) -> tf.Tensor:
    """Returns the smallest of several critics' values, element by element.

    Fujimoto, van Hoof and Meger, "Addressing function approximation error in
    actor-critic methods", 2018, equation 10.

    Args:
      values: A tensor for each critic, all of the same shape.

    Raises:
      ValueError: The shapes differ.
    """
    smallest, *others = map(tf.convert_to_tensor, values)
    for value in others:
        check_same_shape(first_of_values=smallest, other_of_values=value)
        smallest = tf.minimum(smallest, value)
    return smallest


def smoothed_action(
    action: types.TensorLike,
    noise: types.TensorLike,
    noise_clip: types.TensorLike,
    minimum: types.TensorLike,
    maximum: types.TensorLike,
) -> tf.Tensor:
    """Returns `clip(action + clip(noise, -c, c), minimum, maximum)`.

    This is target policy smoothing (Fujimoto, van Hoof and Meger 2018, equation 14),
    with the clipping to the bounds of the actions from the authors' code.

    Args:
      action: The target actor's actions, `[B, ...]`.
      noise: Random numbers, like `action`.
      noise_clip: The largest absolute value `c` of the noise, not negative; broadcast
        to `action`.
      minimum: The least action, broadcast to `action`.
      maximum: The greatest action, broadcast to `action`.

    Raises:
      ValueError: `noise` has another shape, or another argument would broadcast
        `action`.
    """
    action, noise = tf.convert_to_tensor(action), tf.convert_to_tensor(noise)
    check_same_shape(action=action, noise=noise)
    check_broadcast(
        action=action, noise_clip=noise_clip, minimum=minimum, maximum=maximum
    )
    noise_clip, minimum, maximum = (
        tf.cast(bound, action.dtype) for bound in (noise_clip, minimum, maximum)
    )
    noise = tf.clip_by_value(noise, -noise_clip, noise_clip)
    return tf.clip_by_value(action + noise, minimum, maximum)
