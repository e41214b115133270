"""Specs of the observations of bandits whose arms have features."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.specs import tensor_spec

GLOBAL_FEATURE_KEY = "global"
PER_ARM_FEATURE_KEY = "per_arm"
NUM_ACTIONS_FEATURE_KEY = "num_actions"
REWARD_SPEC_KEY = "reward"
CONSTRAINTS_SPEC_KEY = "constraint"


def create_per_arm_observation_spec(
    global_dim: int,
    per_arm_dim: int,
    max_num_actions: int | None = None,
    add_num_actions_feature: bool = False,
) -> dict[str, tf.TensorSpec]:
    """Returns the specs of an observation with features of the arms.

    Args:
      global_dim: The number of features that all arms share.
      per_arm_dim: The number of features of an arm.
      max_num_actions: The number of arms, with the padding; None if it is not known.
      add_num_actions_feature: Whether the observation has the number of arms without
        the padding, which are the first ones.

    Raises:
      ValueError: There is no `max_num_actions` for the bound of the number of arms.
    """
    spec = {
        GLOBAL_FEATURE_KEY: tf.TensorSpec([global_dim], tf.float32),
        PER_ARM_FEATURE_KEY: tf.TensorSpec([max_num_actions, per_arm_dim], tf.float32),
    }
    if add_num_actions_feature:
        if max_num_actions is None:
            raise ValueError(
                "max_num_actions: got None with add_num_actions_feature, expected the "
                "largest number of arms; give it."
            )
        spec[NUM_ACTIONS_FEATURE_KEY] = tensor_spec.BoundedTensorSpec(
            [], tf.int32, 1, max_num_actions
        )
    return spec


def get_context_dims_from_spec(
    context_spec: Any, accepts_per_arm_features: bool
) -> tuple[int, int]:
    """Returns the numbers of global features and of features of an arm.

    Args:
      context_spec: The spec of an observation, without a mask.
      accepts_per_arm_features: Whether it has features of the arms. If not, their
        number is 0.

    Raises:
      ValueError: The spec is of another kind.
    """
    if not accepts_per_arm_features:
        shape = getattr(context_spec, "shape", None)
        if shape is None or shape.rank > 1:
            raise ValueError(
                f"context_spec: got {context_spec}, expected one tensor of shape [d]; "
                "flatten the observation, or set accepts_per_arm_features."
            )
        return (shape[0] if shape.rank else 1), 0
    for key in (GLOBAL_FEATURE_KEY, PER_ARM_FEATURE_KEY):
        if not isinstance(context_spec, dict) or key not in context_spec:
            raise ValueError(
                f"context_spec: got {context_spec}, expected a dictionary with the key "
                f"{key!r}; see create_per_arm_observation_spec."
            )
    return (
        context_spec[GLOBAL_FEATURE_KEY].shape[0],
        context_spec[PER_ARM_FEATURE_KEY].shape[1],
    )


def drop_arm_observation(trajectory: Any) -> Any:
    """Returns a trajectory, or its specs, without the features of all arms."""
    observation = trajectory.observation
    kept = {k: x for k, x in observation.items() if k != PER_ARM_FEATURE_KEY}
    return trajectory._replace(observation=kept)
