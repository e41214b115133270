"""Helpers of policies: discrete actions, action masks, modes of distributions."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import nest_utils
from tfrl.utils.random_numbers import seeds


class InfoFields:
    """Names of fields of `PolicyStep.info`."""

    LOG_PROBABILITY = policy_step.CommonFields.LOG_PROBABILITY
    PREDICTED_REWARDS_MEAN = "predicted_rewards_mean"
    MULTIOBJECTIVE_SCALARIZED_PREDICTED_REWARDS_MEAN = (
        "multiobjective_scalarized_predicted_rewards_mean"
    )
    PREDICTED_REWARDS_OPTIMISTIC = "predicted_rewards_optimistic"
    PREDICTED_REWARDS_SAMPLED = "predicted_rewards_sampled"
    BANDIT_POLICY_TYPE = "bandit_policy_type"
    CHOSEN_ARM_FEATURES = "chosen_arm_features"


class PolicyInfo(NamedTuple):
    """A `PolicyStep.info` with fields for predicted rewards; unused fields are `()`."""

    log_probability: Any = ()
    predicted_rewards_mean: Any = ()
    multiobjective_scalarized_predicted_rewards_mean: Any = ()
    predicted_rewards_optimistic: Any = ()
    predicted_rewards_sampled: Any = ()
    bandit_policy_type: Any = ()


class PerArmPolicyInfo(NamedTuple):
    """A `PolicyInfo` of arms with features: it keeps those of the chosen arm."""

    log_probability: Any = ()
    predicted_rewards_mean: Any = ()
    multiobjective_scalarized_predicted_rewards_mean: Any = ()
    predicted_rewards_optimistic: Any = ()
    predicted_rewards_sampled: Any = ()
    bandit_policy_type: Any = ()
    chosen_arm_features: Any = ()


class BanditPolicyType:
    """How a bandit's policy chose an action, an int32."""

    UNKNOWN = 0
    GREEDY = 1
    UNIFORM = 2
    BOLTZMANN = 3
    FALCON = 4


def create_bandit_policy_type_tensor_spec(
    shape: types.Shape,
) -> tensor_spec.BoundedTensorSpec:
    """Returns the spec of values of `BanditPolicyType` of a shape."""
    return tensor_spec.BoundedTensorSpec(
        shape, tf.int32, BanditPolicyType.UNKNOWN, BanditPolicyType.FALCON
    )


def get_num_actions_from_tensor_spec(action_spec: tensor_spec.BoundedTensorSpec) -> int:
    """Returns the number of actions of a bounded scalar int32 or int64 spec from 0.

    Raises:
      ValueError: `action_spec` is another kind of spec.
    """
    expected = "expected a bounded scalar int32 or int64 spec with minimum 0"
    if not isinstance(action_spec, tensor_spec.BoundedTensorSpec):
        raise ValueError(
            f"action_spec: {expected}, got {type(action_spec).__name__}; pass a "
            "BoundedTensorSpec."
        )
    if action_spec.shape.rank != 0 or action_spec.dtype not in (tf.int32, tf.int64):
        raise ValueError(
            f"action_spec: {expected}, got shape {action_spec.shape} and dtype "
            f"{action_spec.dtype.name}; flatten or discretise the actions."
        )
    check_zero_minimum(action_spec)
    return int(action_spec.maximum) + 1


def check_zero_minimum(action_spec: tensor_spec.BoundedTensorSpec) -> None:
    """Raises ValueError unless the minimum of the actions is 0."""
    if (action_spec.minimum != 0).any():
        raise ValueError(
            f"action_spec: got minimum {action_spec.minimum}, expected a minimum of 0 "
            f"in {action_spec}; wrap the environment in ActionOffsetWrapper."
        )


def network_observation_spec(observation_spec: Any, splitter: Any) -> Any:
    """Returns the specs of the network's part of the observation, or of the whole."""
    return observation_spec if splitter is None else splitter(observation_spec)[0]


def outer_shape(time_step: ts.TimeStep) -> tf.TensorShape | tf.Tensor:
    """Returns the batch shape of a time step, as a `TensorShape` if it is static."""
    shape = time_step.step_type.shape
    return shape if shape.is_fully_defined() else tf.shape(time_step.step_type)


def mask_values(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Replaces the values of invalid actions by the least number of their dtype.

    Args:
      values: `[..., num_actions]`, floats.
      mask: The same shape, booleans or numbers; 0 marks an invalid action.
    """
    return tf.where(tf.cast(mask, tf.bool), values, values.dtype.min)


def masked_argmax(
    input_tensor: tf.Tensor, mask: tf.Tensor, output_type: tf.DType = tf.int32
) -> tf.Tensor:
    """Returns the argmax over the allowed entries of each row, -1 if all are forbidden.

    Args:
      input_tensor: `[B, N]`, floats.
      mask: `[B, N]`, booleans or numbers; 0 forbids an entry.
      output_type: int32 or int64.
    """
    input_tensor.shape.assert_is_compatible_with(mask.shape)
    mask = tf.cast(mask, tf.bool)
    best = tf.argmax(mask_values(input_tensor, mask), axis=-1, output_type=output_type)
    return tf.where(tf.reduce_any(mask, axis=-1), best, tf.constant(-1, output_type))


def random_valid_index(mask: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Draws one of the valid entries of each row uniformly: int32 `[...]`.

    Args:
      mask: `[..., num_actions]`, booleans or numbers; 0 marks an invalid action. A row
        without a valid action gives 0.
      seed: Integer tensor `[2]`.
    """
    # Each of several independent uniform numbers is equally likely to be the largest.
    numbers = seeds.uniform(seed, tf.shape(mask))
    valid = tf.where(tf.cast(mask, tf.bool), numbers, -1.0)
    return tf.argmax(valid, axis=-1, output_type=tf.int32)


def check_continuous(action_spec: Any, policy: str) -> None:
    """Raises ValueError unless all the actions are floats.

    Args:
      action_spec: A nest of specs.
      policy: The name of the policy's class, for the error text.
    """
    for path, spec in nest_utils.flatten_with_joined_paths(action_spec):
        if not tensor_spec.is_continuous(spec):
            raise ValueError(
                f"action_spec {path}".rstrip() + f": got dtype {spec.dtype.name}, "
                f"expected continuous actions, as {policy} does arithmetic with them; "
                "use EpsilonGreedyPolicy or BoltzmannPolicy for discrete actions."
            )


def divide_logits(logits: tf.Tensor, temperature: Any) -> tf.Tensor:
    """Returns `logits / temperature`, and keeps masked logits finite.

    Args:
      logits: `[..., num_actions]`, where masked actions have the least number.
      temperature: A positive scalar.
    """
    divided = logits / tf.cast(temperature, logits.dtype)
    return tf.maximum(divided, logits.dtype.min)


def distribution_mode(distribution: Any) -> tf.Tensor:
    """Returns the mode of a distribution; a tensor is its own mode.

    Raises:
      ValueError: The distribution has no mode.
    """
    if tf.is_tensor(distribution) and not hasattr(distribution, "mode"):
        return distribution
    try:
        return distribution.mode()
    except NotImplementedError:
        raise ValueError(
            f"greedy action: {type(distribution).__name__} does not implement mode(), "
            "and a greedy policy takes the mode of each action distribution; use a "
            "distribution that has one, or act with the stochastic policy."
        ) from None


def action_log_probability(
    distribution: Any, action: tf.Tensor, outer_rank: int
) -> tf.Tensor:
    """Returns the log-probability of each action, float32 `[B]`.

    Args:
      distribution: A distribution of batch shape `[B, ...]`. The dimensions after `B`
        are independent parts of one action; their log-probabilities are added up.
      action: A sample of `distribution`.
      outer_rank: Number of outer dimensions, 1 for `[B]`.

    Raises:
      TypeError: The distribution does not give log-probabilities.
    """
    try:
        log_probability = tf.cast(distribution.log_prob(action), tf.float32)
    except NotImplementedError as error:
        raise TypeError(
            f"emit_log_probability: got a {type(distribution).__name__}, which has no "
            "log_prob, expected a distribution with one; use another, or "
            "emit_log_probability=False."
        ) from error
    inner = list(range(outer_rank, log_probability.shape.rank))
    return tf.reduce_sum(log_probability, inner) if inner else log_probability


def log_probability_spec(action_spec: types.NestedTensorSpec) -> Any:
    """Returns the specs of log-probabilities, in the structure of `action_spec`."""
    spec = tensor_spec.BoundedTensorSpec(
        (), tf.float32, minimum=-float("inf"), maximum=0.0, name="log_probability"
    )
    return tf.nest.map_structure(lambda _: spec, action_spec)
