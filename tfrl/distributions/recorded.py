"""Log-probabilities of actions that were recorded, not drawn from the distribution."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.utils import actions as actions_lib

# The least distance of an action from a bound, as a fraction of half the width of its
# range.
_NEAREST = 1e-6


def log_probability(distributions: Any, actions: Any, action_spec: Any) -> tf.Tensor:
    """Returns the log-probabilities of recorded actions, float32 `[B]` or `[B, T]`.

    They are always finite. At a bound of a squashed distribution (tanh) the density is
    0 or infinite, so an action at a bound is moved inside, by a millionth of half the
    width of the range.

    Args:
      distributions: A nest of distributions.
      actions: The nest of actions, `[B, ...]` or `[B, T, ...]`.
      action_spec: The nest of their specs.
    """
    inside = tf.nest.map_structure(_moved_inside, distributions, actions)
    log_prob = actions_lib.log_probability(distributions, inside, action_spec)
    return tf.cast(log_prob, tf.float32)


def _moved_inside(distribution: Any, action: tf.Tensor) -> tf.Tensor:
    from tfrl.distributions import squash_to_spec

    if not isinstance(distribution, squash_to_spec.SquashToSpecNormal):
        return action
    dtype = distribution.dtype
    mean = tf.cast(distribution.action_means, dtype)
    magnitude = tf.cast(distribution.action_magnitudes, dtype)
    scaled = (tf.cast(action, dtype) - mean) / magnitude
    return mean + magnitude * tf.clip_by_value(scaled, _NEAREST - 1, 1 - _NEAREST)
