"""Checks a DQN agent's arguments, and builds its networks and policies."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.policies import (
    boltzmann_policy,
    epsilon_greedy_policy,
    greedy_policy,
    q_policy,
    tf_policy,
)
from tfrl.specs import tensor_spec
from tfrl.utils import number_checks


def check_action_spec(action_spec: Any) -> int:
    """Returns the number of actions; raises a ValueError if DQN cannot handle them."""
    specs = tf.nest.flatten(action_spec)
    if len(specs) != 1 or specs[0].shape.rank != 0 or not specs[0].dtype.is_integer:
        raise ValueError(
            "action_spec: DQN expects one scalar integer action, got "
            f"{action_spec}; train continuous actions with agents.ReinforceAgent, or "
            "make them discrete with environments.wrappers.ActionDiscretizeWrapper."
        )
    (spec,) = specs
    if not isinstance(spec, tensor_spec.BoundedTensorSpec):
        raise ValueError(
            f"action_spec: DQN expects a BoundedTensorSpec, got {spec}; give the "
            "actions bounds, from 0 to n - 1."
        )
    if spec.minimum != 0:
        raise ValueError(
            f"action_spec: DQN expects actions that count from 0, got minimum "
            f"{spec.minimum}; shift them with "
            "tfrl.environments.wrappers.ActionOffsetWrapper."
        )
    return int(spec.maximum) + 1


def check_exploration(epsilon_greedy: Any, boltzmann_temperature: Any) -> None:
    """Raises a ValueError unless exactly one kind of exploration is given."""
    if epsilon_greedy is not None and boltzmann_temperature is not None:
        raise ValueError(
            "epsilon_greedy and boltzmann_temperature: expected one of them, got "
            f"{epsilon_greedy} and {boltzmann_temperature}; give None for the other."
        )
    if epsilon_greedy is None and boltzmann_temperature is None:
        raise ValueError(
            "epsilon_greedy and boltzmann_temperature: expected one of them, got None "
            "for both; epsilon_greedy=0.0 collects without exploring."
        )


def check_exploration_values(epsilon_greedy: Any, boltzmann_temperature: Any) -> None:
    """Raises an error if a number, or a value of a Keras schedule, is out of range."""
    if epsilon_greedy is not None:
        number_checks.check_number(
            "epsilon_greedy",
            epsilon_greedy,
            0.0,
            1.0,
            remedy="it is a probability: 0 never explores, 1 always does",
        )
    if boltzmann_temperature is not None:
        number_checks.check_number(
            "boltzmann_temperature",
            boltzmann_temperature,
            0.0,
            excludes_low=True,
            remedy="use epsilon_greedy=0.0 for the limit of 0",
        )


def check_per_transition(
    agent: str, td_loss: tf.Tensor, td_error: tf.Tensor, shape: tf.TensorShape
) -> None:
    """Raises a ValueError unless there is one loss and one error per transition."""
    for name, value in (("loss", td_loss), ("error", td_error)):
        if not value.shape.is_compatible_with(shape):
            raise ValueError(
                f"{agent}._td_error: expected a loss and an error for each "
                f"transition, shape {shape}, got a {name} of shape {value.shape}; add "
                "up or average over what there is more of, such as quantiles."
            )


def make_policies(
    policy: q_policy.QPolicy,
    epsilon_greedy: Any,
    boltzmann_temperature: Any,
    seed: int | None,
) -> tuple[tf_policy.TFPolicy, tf_policy.TFPolicy]:
    """Returns the greedy policy and the collecting policy."""
    greedy = greedy_policy.GreedyPolicy(policy)
    if boltzmann_temperature is not None:
        return greedy, boltzmann_policy.BoltzmannPolicy(
            policy, temperature=boltzmann_temperature, seed=seed
        )
    return greedy, epsilon_greedy_policy.EpsilonGreedyPolicy(
        policy, epsilon=epsilon_greedy, seed=seed
    )
