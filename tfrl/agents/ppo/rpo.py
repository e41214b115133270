"""Robust policy optimization: means that are perturbed in updates.

An update of PPO sees normal distributions N(mu + z, sigma^2) in place of the policy's
N(mu, sigma^2), with z drawn from U(-alpha, alpha) for each action, so that the policy
stays random for longer. Rahman and Xue, "Robust policy optimization in deep
reinforcement learning" (2022, arXiv:2212.07536), algorithm 1.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.agents import checks
from tfrl.specs import tensor_spec
from tfrl.utils import actions as actions_lib
from tfrl.utils.random_numbers import seeds


def perturbed(actions: Any, action_spec: Any, alpha: float, seed: tf.Tensor) -> Any:
    """Returns `a - z`, whose density is that of `a` with the mean `mu + z`.

    Args:
      actions: A nest of actions, `[B, T, ...]`.
      action_spec: Its nest of specs. If a spec has finite bounds, z is in units of half
        of their distance.
      alpha: The largest size of z.
      seed: A stateless seed, int64 `[2]`.
    """
    flat, specs = map(tf.nest.flatten, (actions, action_spec))
    each = seeds.split_seed(seed, len(flat))
    moved = [
        action - _unit(spec) * alpha * seeds.uniform(own, tf.shape(action), -1.0, 1.0)
        for action, spec, own in zip(flat, specs, each, strict=True)
    ]
    return tf.nest.pack_sequence_as(actions, moved)


def _unit(spec: Any) -> Any:
    if not actions_lib.has_finite_range(spec):
        return 1.0
    return actions_lib.spec_means_and_magnitudes(spec)[1]


def check(distribution_spec: Any, action_spec: Any) -> None:
    """Raises a ValueError unless all actions have normal distributions.

    Args:
      distribution_spec: The nest of specs of an actor's distributions.
      action_spec: The nest of specs of the actions.
    """
    specs = tf.nest.flatten(action_spec)
    if all(map(tensor_spec.is_continuous, specs)) and all(
        checks.is_normal(spec.parameters) for spec in tf.nest.flatten(distribution_spec)
    ):
        return
    raise ValueError(
        "rpo_alpha: expected 0, since the actor's distributions are not all normal "
        f"ones, whose means can be perturbed, got {distribution_spec}; leave it out, "
        "or use a NormalProjectionNetwork for continuous actions."
    )
