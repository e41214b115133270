"""Clipping, scaling, indexing and log-probabilities of actions."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.losses import td
from tfrl.specs import tensor_spec
from tfrl.utils import nest_utils


def clip_to_spec(value: tf.Tensor, spec: Any) -> tf.Tensor:
    """Clips `value` to the bounds of `spec`."""
    return tf.clip_by_value(value, spec.minimum, spec.maximum)


def spec_means_and_magnitudes(action_spec: Any) -> tuple[Any, Any]:
    """Returns the middle and the half-width of each bounded spec in the nest."""
    return (
        tf.nest.map_structure(lambda s: sum(_float_bounds(s)) / 2, action_spec),
        tf.nest.map_structure(
            lambda s: np.subtract(*_float_bounds(s)) / 2, action_spec
        ),
    )


def num_components(action_spec: Any) -> int:
    """Returns the number of components of all actions together."""
    return sum(spec.shape.num_elements() for spec in tf.nest.flatten(action_spec))


def has_finite_range(spec: Any) -> bool:
    """Whether a spec of floats has bounds, and its range is a finite number.

    Infinite bounds are also written as the largest numbers of the dtype.
    """
    if not tensor_spec.is_bounded(spec):
        return False
    limit = spec.dtype.max / 2
    return bool(np.all(spec.minimum > -limit) and np.all(spec.maximum < limit))


def _float_bounds(spec: Any) -> tuple[Any, Any]:
    # These are floats, because the sum or difference of integer bounds can overflow.
    dtype = np.result_type(spec.maximum, np.float32)
    return np.asarray(spec.maximum, dtype), np.asarray(spec.minimum, dtype)


def scale_to_spec(tensor: tf.Tensor, spec: Any) -> tf.Tensor:
    """Maps `tensor`, shape `[B] + spec.shape` in [-1, 1], onto the bounds of `spec`."""
    tensor = tf.reshape(tensor, [-1, *spec.shape.as_list()])
    means, magnitudes = spec_means_and_magnitudes(spec)
    scaled = tf.cast(means, tensor.dtype) + tf.cast(magnitudes, tensor.dtype) * tensor
    return tf.cast(scaled, spec.dtype)


def index_with_actions(
    q_values: tf.Tensor, actions: tf.Tensor, multi_dim_actions: bool = False
) -> tf.Tensor:
    """Picks `q_values[..., action]` for each action.

    Args:
      q_values: `[B, ..., num_actions]`, or `[B, ..., n1, ..., nk]` for
        `multi_dim_actions`.
      actions: `[B, ...]`, integers; `[B, ..., k]` for `multi_dim_actions`.
      multi_dim_actions: Whether an action is a vector that indexes `k` dimensions.

    Returns:
      `[B, ...]`, the chosen values.

    Raises:
      ValueError: If the outer dimensions of `q_values` and `actions` do not agree.
    """
    if multi_dim_actions:
        if actions.dtype not in (tf.int32, tf.int64):
            # TensorFlow refuses indices of other types, here or in the gradient.
            actions = tf.cast(actions, tf.int32)
        return tf.gather_nd(q_values, actions, batch_dims=actions.shape.rank - 1)
    if actions.shape.rank is None:
        actions = tf.ensure_shape(actions, q_values.shape[:-1])
    if actions.shape.rank + 1 != q_values.shape.rank:
        raise ValueError(
            "actions: expected one dimension less than q_values of shape "
            f"{q_values.shape}, got shape {actions.shape}; index the last "
            "dimension of q_values with one action per outer entry."
        )
    return td.action_value(q_values, actions)


def log_probability(distributions: Any, actions: Any, action_spec: Any) -> tf.Tensor:
    """Returns the log-probability of actions, summed over all but outer dimensions.

    If a discrete spec excludes 0, the zeros of padding have the probability of the
    action nearest to 0.
    """
    nest_utils.assert_same_structure(distributions, actions)
    actions = tf.nest.map_structure(_with_a_likelihood, actions, action_spec)
    outer_rank = nest_utils.get_outer_rank(actions, action_spec)
    return tf.add_n(
        [
            _sum_inner(distribution.log_prob(_of_this_graph(action)), outer_rank)
            for distribution, action in zip(
                tf.nest.flatten(distributions), tf.nest.flatten(actions), strict=True
            )
        ]
    )


def _of_this_graph(action: Any) -> Any:
    """Returns an action as a tensor of the graph that is being built.

    TFP's bijectors cache their results for each tensor. A result that was computed
    inside a loop or a condition cannot be used outside it. So a tensor from outside is
    copied first: then only the copy, which is inside, too, leads to the cached result.
    """
    if tf.executing_eagerly():
        return action
    is_here = getattr(action, "graph", None) is tf.compat.v1.get_default_graph()
    return action if is_here else tf.identity(action)


def _with_a_likelihood(action: Any, spec: Any) -> Any:
    """Replaces zeros that are outside of a discrete spec by valid actions."""
    nearest = nearest_to_zero(spec)
    if not np.any(nearest):
        return action
    action = tf.convert_to_tensor(action)
    return tf.where(action == 0, tf.cast(nearest, action.dtype), action)


def nearest_to_zero(spec: Any) -> np.ndarray:
    """Returns the action of a discrete spec that is nearest to 0; 0 for others."""
    if not (tensor_spec.is_discrete(spec) and tensor_spec.is_bounded(spec)):
        return np.zeros((), np.int64)
    return np.clip(0, spec.minimum, spec.maximum)


def entropy(
    distributions: Any, action_spec: Any, outer_rank: int | None = None
) -> tf.Tensor | None:
    """Returns the entropy of a nest of action distributions, for each outer entry.

    Distributions without an analytic entropy are left out; if all of them are, the
    result is None. `outer_rank` is the number of outer dimensions; if None, it is
    inferred from the distributions' modes.
    """
    if outer_rank is None:
        modes = tf.nest.map_structure(lambda d: d.mode(), distributions)
        outer_rank = nest_utils.get_outer_rank(modes, action_spec)
    entropies = []
    for distribution in tf.nest.flatten(distributions):
        try:
            entropies.append(_sum_inner(distribution.entropy(), outer_rank))
        except NotImplementedError:
            continue
    return tf.add_n(entropies) if entropies else None


def _sum_inner(values: tf.Tensor, outer_rank: int) -> tf.Tensor:
    return tf.reduce_sum(values, axis=list(range(outer_rank, values.shape.rank)))
