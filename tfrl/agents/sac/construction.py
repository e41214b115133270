"""Checks a SAC agent's arguments, and builds its critics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.agents import checks, target_networks
from tfrl.specs import tensor_spec
from tfrl.utils import actions, nest_utils, number_checks


def check_action_spec(action_spec: Any, algorithm: str = "SAC") -> Any:
    """Returns the specs of bounded continuous actions as tensor specs.

    Args:
      action_spec: A nest of specs.
      algorithm: The algorithm's name, for the error.

    Raises:
      ValueError: An action is discrete, has no bounds, or can have one value only.
    """
    for path, spec in nest_utils.flatten_with_joined_paths(action_spec):
        where = f"action_spec {path}".rstrip()
        if tensor_spec.is_discrete(tensor_spec.from_spec(spec)):
            raise ValueError(
                f"{where}: {algorithm} expects floats, got {spec}; train discrete "
                "actions with agents.DiscreteSacAgent or agents.DqnAgent."
            )
    action_spec = checks.as_continuous_action_spec(action_spec, algorithm)
    for path, spec in nest_utils.flatten_with_joined_paths(action_spec):
        if not np.all(spec.minimum < spec.maximum):
            raise ValueError(
                f"action_spec {path}".rstrip() + f": {algorithm} expects minima below "
                f"the maxima, got {spec}; leave out the parts of an action that cannot "
                "change."
            )
    return action_spec


def num_dimensions(action_spec: Any) -> int:
    """Returns the number of components of all actions."""
    return sum(int(np.prod(spec.shape)) for spec in tf.nest.flatten(action_spec))


def log_magnitude(action_spec: Any) -> float:
    """Returns the sum of the logarithms of half the widths of all components' ranges.

    This is what scaling actions to [-1, 1] adds to the logarithm of their density.
    """
    _, magnitudes = actions.spec_means_and_magnitudes(action_spec)
    return sum(
        float(np.sum(np.log(np.broadcast_to(magnitude, spec.shape))))
        for magnitude, spec in zip(
            tf.nest.flatten(magnitudes), tf.nest.flatten(action_spec), strict=True
        )
    )


def critics_with_targets(
    critic_network: Any,
    critic_network_2: Any,
    target_critic_network: Any,
    target_critic_network_2: Any,
    input_spec: Any,
) -> list[tuple[Any, Any]]:
    """Returns two critics, or one ensemble of critics, with their targets.

    The arguments and errors are those of `target_networks.twin_critics`.

    Raises:
      ValueError: There is a second network beside an ensemble.
    """
    first = target_networks.with_target(
        critic_network, target_critic_network, "TargetCriticNetwork1", input_spec
    )
    if not _is_ensemble(first[0]):
        return target_networks.twin_critics(
            first[0],
            critic_network_2,
            first[1],
            target_critic_network_2,
            input_spec,
        )
    for name, network in (
        ("critic_network_2", critic_network_2),
        ("target_critic_network_2", target_critic_network_2),
    ):
        if network is not None:
            raise ValueError(
                f"{name}: expected None, since critic_network {first[0].name!r} "
                f"holds several critics, got {network.name!r}; make one network with "
                "all of them."
            )
    return [first]


def _is_ensemble(critic: Any) -> bool:
    spec = critic.create_variables()
    return isinstance(spec, tf.TensorSpec) and bool(spec.shape.rank)


def count_critics(critics: Sequence[Any]) -> int:
    """Returns the number of critics in networks with outputs `[B]` or `[B, N, ...]`."""
    return sum(
        critic.create_variables().shape[0] if _is_ensemble(critic) else 1
        for critic in critics
    )


def check_num_min(num_min: int | None, num_critics: int) -> None:
    """Raises an error unless `num_min` is None or at most the number of critics."""
    if num_min is not None:
        number_checks.check_integer(
            "num_min", num_min, 1, remedy="None takes the minimum over all critics"
        )
        if num_min > num_critics:
            raise ValueError(
                f"num_min: expected at most {num_critics}, the number of critics, got "
                f"{num_min}; make a CriticEnsembleNetwork of more critics."
            )
