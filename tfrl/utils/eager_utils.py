"""Clips and summarizes gradients given as pairs of gradient and variable.

These are TF-Agents' `eager_utils`, for use in hand-written training steps between
`tape.gradient` and `optimizer.apply_gradients`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tfrl.utils.optimization import optimizers
from tfrl.utils.summaries import add_gradients_summaries, add_variables_summaries

__all__ = [
    "add_gradients_summaries",
    "add_variables_summaries",
    "clip_gradient_norms",
    "clip_gradient_norms_fn",
]

GradientsAndVariables = list[tuple[Any, Any]]


def clip_gradient_norms(
    gradients_to_variables: Iterable[tuple[Any, Any]], max_norm: Any
) -> GradientsAndVariables:
    """Clips each gradient separately to norm `max_norm`.

    Args:
      gradients_to_variables: Pairs `(gradient, variable)`; a gradient is a tensor,
        `tf.IndexedSlices` or None, which stays None.
      max_norm: The largest norm that a gradient may have.

    Returns:
      The pairs, with clipped gradients.
    """
    pairs = list(gradients_to_variables)
    clipped = optimizers.clip_gradient_norms([g for g, _ in pairs], max_norm)
    variables = [variable for _, variable in pairs]
    return list(zip(clipped, variables, strict=True))


def clip_gradient_norms_fn(
    max_norm: Any,
) -> Callable[[Iterable[tuple[Any, Any]]], GradientsAndVariables]:
    """Returns a function that calls `clip_gradient_norms` with `max_norm`."""
    return lambda pairs: clip_gradient_norms(pairs, max_norm)
