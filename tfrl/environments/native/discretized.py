"""Turns the continuous actions of `Dynamics` into discrete ones."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf
import tree

from tfrl.environments.boundary import action_bins
from tfrl.environments.native.dynamics import Dynamics, Outcome
from tfrl.specs import tensor_spec


def discretize_actions(dynamics: Dynamics, num_actions: Any) -> Dynamics:
    """Offers evenly spaced values for each element of a continuous action.

    The discrete action is int32 and has the shape of the continuous one, except that a
    continuous action of shape `(1,)` becomes a scalar, as with
    `wrappers.ActionDiscretizeWrapper`.

    Args:
      dynamics: The dynamics, whose actions are a single tensor with finite bounds.
      num_actions: The number of values of each element, at least 2: one number, or an
        array that broadcasts to the shape of the action.

    Raises:
      ValueError: If `dynamics` has other actions, or `num_actions` is below 2, not an
        integer or of a shape that does not broadcast.
    """
    continuous_spec = dynamics.action_spec
    spec, values, offsets = action_bins.divide(
        tensor_spec.to_nest_array_spec(continuous_spec), num_actions
    )
    shape = tree.flatten(continuous_spec)[0].shape

    def step(state: Any, action: tf.Tensor, random: tf.Tensor) -> Outcome:
        bins = tf.reshape(action, [-1, len(offsets)]) + offsets
        continuous = tf.reshape(tf.gather(values, bins), [action.shape[0], *shape])
        continuous = tree.unflatten_as(continuous_spec, [continuous])
        return dynamics.step(state, continuous, random)

    return dataclasses.replace(
        dynamics, step=step, action_spec=tensor_spec.from_spec(spec)
    )
