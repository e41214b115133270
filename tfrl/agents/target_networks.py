"""Makes target networks, and second critics.

A target network is a copy of a trained network, whose weights it follows slowly (Mnih
et al. 2015, "Human-level control through deep reinforcement learning", algorithm 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from tfrl.agents import checks
from tfrl.networks import mask_splitter_network
from tfrl.networks import network as network_lib
from tfrl.networks.construction import seeding
from tfrl.utils import common

if TYPE_CHECKING:
    from tfrl.typing import types


def with_target(
    network: types.Network | types.Layer | None,
    target: types.Network | types.Layer | None,
    name: str,
    input_spec: types.NestedTensorSpec,
) -> tuple[network_lib.Network, network_lib.Network]:
    """Creates the variables of a network and of its target, and returns both.

    Args:
      network: A `Network`, or a Keras layer or model.
      target: The same, or None for a copy of `network`.
      name: The name of the copy.
      input_spec: The specs of the inputs.

    Raises:
      ValueError: If the networks share trainable variables, or do not match.
    """
    network = network_lib.as_network(network, input_spec)
    network.create_variables(input_spec)
    if target is not None:
        target = network_lib.as_network(target, input_spec)
    return network, common.maybe_copy_target_network_with_checks(
        network, target, name, input_spec
    )


def twin(
    network: types.Network,
    second: types.Network | types.Layer | None,
    name: str,
    input_spec: types.NestedTensorSpec,
) -> network_lib.Network:
    """Returns a second network with different initial weights.

    Args:
      network: A `Network` with variables.
      second: A `Network`, or a Keras layer or model; None for a copy of `network`. The
        copy of a network with seeds has other seeds, derived from them.
      name: The name of the copy.
      input_spec: The specs of the inputs.

    Raises:
      ValueError: If the networks share trainable variables, or do not match.
    """
    if second is None:
        second = network.copy(name=name)
        # A network that sees a part of observations begins as it would without others.
        is_partial = isinstance(second, mask_splitter_network.MaskSplitterNetwork)
        seeded = second.wrapped_network if is_partial else second
        seeding.reseed_layer(seeded, seeding.SeedStream(0))
    else:
        second = network_lib.as_network(second, input_spec)
    second = common.maybe_copy_target_network_with_checks(
        network, second, name, input_spec
    )
    _warn_if_equal(network, second)
    return second


def _warn_if_equal(first: Any, second: Any) -> None:
    pairs = zip(first.trainable_variables, second.trainable_variables, strict=True)
    if all(np.array_equal(a.numpy(), b.numpy()) for a, b in pairs):
        checks.warn_user(
            f"networks {first.name!r} and {second.name!r}: got equal initial weights, "
            "expected different ones, since the networks would stay equal, and the "
            "smaller of two equal values is the value of one network; give their "
            "initialisers different seeds."
        )


def twin_critics(
    critic_network: types.Network | types.Layer,
    critic_network_2: types.Network | types.Layer | None,
    target_critic_network: types.Network | types.Layer | None,
    target_critic_network_2: types.Network | types.Layer | None,
    input_spec: types.NestedTensorSpec,
) -> list[tuple[network_lib.Network, network_lib.Network]]:
    """Returns two critics with different initial weights, each with its target.

    Args:
      critic_network: A `Network`, or a Keras layer or model.
      critic_network_2: The same; None for a copy of `critic_network` with other
        initial weights.
      target_critic_network: The target of the first; None for a copy.
      target_critic_network_2: The target of the second; None for a copy.
      input_spec: The pair of observation specs and action specs.

    Raises:
      ValueError: There is a `target_critic_network_2` but no `critic_network_2`, or
        networks share trainable variables or do not match.
    """
    if critic_network_2 is None and target_critic_network_2 is not None:
        raise ValueError(
            "target_critic_network_2: expected None without critic_network_2, whose "
            f"target it would be, got {target_critic_network_2.name!r}; give the agent "
            "the second critic, too."
        )
    first = with_target(
        critic_network, target_critic_network, "TargetCriticNetwork1", input_spec
    )
    second = twin(first[0], critic_network_2, "CriticNetwork2", input_spec)
    return [
        first,
        with_target(
            second, target_critic_network_2, "TargetCriticNetwork2", input_spec
        ),
    ]


def critics_with_targets(
    critic_network: types.Network | types.Layer,
    critic_network_2: types.Network | types.Layer | None,
    target_critic_network: types.Network | types.Layer | None,
    target_critic_network_2: types.Network | types.Layer | None,
    input_spec: types.NestedTensorSpec,
) -> list[tuple[network_lib.Network, network_lib.Network]]:
    """Returns two critics, or one ensemble of critics, with their targets.

    The arguments and errors are as for `twin_critics`. The output of an
    ensemble has several numbers for each pair.

    Raises:
      ValueError: There is another network in addition to an ensemble.
    """
    first = with_target(
        critic_network, target_critic_network, "TargetCriticNetwork1", input_spec
    )
    if not is_ensemble(first[0]):
        return twin_critics(
            first[0], critic_network_2, first[1], target_critic_network_2, input_spec
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


def is_ensemble(critic: types.Network) -> bool:
    """Returns whether a built critic's output is `[B, N, ...]`, not `[B]`."""
    spec = critic.create_variables()
    return isinstance(spec, tf.TensorSpec) and bool(spec.shape.rank)
