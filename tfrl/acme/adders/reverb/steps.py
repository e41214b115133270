"""The forms in which adders store experience, and helpers for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tree

from tfrl.specs import array_spec

if TYPE_CHECKING:
    from tfrl.specs import EnvironmentSpec


class Step(NamedTuple):
    """One step of an episode; or, as `Trajectory`, consecutive steps `[T, ...]`.

    The row of an episode's last observation has no action. Its `action`, `reward`,
    `discount` and `extras` are zeros.

    Attributes:
      observation: The nest of observations before the action.
      action: The nest of actions.
      reward: The reward for the action.
      discount: The environment's discount after the action.
      start_of_episode: bool, whether the observation is the first of an episode.
      extras: The nest of extras of the step; `()` without any.
    """

    observation: Any
    action: Any
    reward: Any
    discount: Any
    start_of_episode: Any
    extras: Any = ()


Trajectory = Step


def zeros_like(nest: Any) -> Any:
    """Returns a nest of zeros with the shapes and dtypes of the leaves of `nest`."""
    return tree.map_structure(np.zeros_like, nest)


def final_step_like(step: Step, next_observation: Any) -> Step:
    """Returns the row of an episode's last observation, zeros in its other fields.

    Args:
      step: Another step of the episode, for shapes and dtypes.
      next_observation: The nest of the last observation.
    """
    return zeros_like(step)._replace(
        observation=next_observation, start_of_episode=np.False_
    )


def is_empty(nest: Any) -> bool:
    """Returns whether extras are missing: None, or an empty nest."""
    return nest is None or (tree.is_nested(nest) and not tree.flatten(nest))


def step_spec(environment_spec: EnvironmentSpec, extras_spec: Any = ()) -> Step:
    """Returns the specs of a row.

    Args:
      environment_spec: The specs of the environment.
      extras_spec: The nest of specs of the extras.
    """
    return Step(
        observation=environment_spec.observations,
        action=environment_spec.actions,
        reward=environment_spec.rewards,
        discount=environment_spec.discounts,
        start_of_episode=array_spec.ArraySpec((), np.bool_),
        extras=extras_spec,
    )


def tensor_specs(specs: Any, outer_shape: tuple[int | None, ...] = ()) -> Any:
    """Returns a nest of `tf.TensorSpec`, each named by its path.

    Args:
      specs: A nest of specs with `shape` and `dtype`: of dm_env, of arrays or tensors.
      outer_shape: Dimensions to put in front of the specs' own; None for any number.
    """
    import tensorflow as tf

    return tree.map_structure_with_path(
        lambda path, spec: tf.TensorSpec(
            (*outer_shape, *spec.shape), spec.dtype, name="/".join(map(str, path))
        ),
        specs,
    )
