"""Stores distributions of actions as tensors, and compares them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf
import tree

from tfrl.distributions import utils as distribution_utils

if TYPE_CHECKING:
    from tfrl.typing import types


def get_distribution_params(
    nested_distribution: types.NestedDistribution,
) -> types.NestedTensor:
    """Returns the tensors that a nest of distributions depends on.

    Returns:
      A nest like `nested_distribution`, with a dictionary of tensors for each
      distribution, such as `{"logits": ...}` or `{"loc": ..., "scale_diag": ...}`. The
      tensors of a masked categorical distribution are its masked logits.
    """
    return tf.nest.map_structure(
        lambda distribution: _leaves(
            distribution_utils.get_parameters(distribution), tf.is_tensor
        ),
        nested_distribution,
    )


def get_distribution_params_spec(distribution_spec: Any) -> types.NestedTensorSpec:
    """Returns the specs of `get_distribution_params`.

    Args:
      distribution_spec: The result of an actor network's `create_variables`, a nest of
        `DistributionSpecV2`s.
    """
    # The bounded spec of squashed actions is an argument; it describes no tensor.
    return tf.nest.map_structure(
        lambda spec: _leaves(spec.parameters, lambda x: type(x) is tf.TensorSpec),
        distribution_spec,
    )


def _leaves(
    params: distribution_utils.Params, is_wanted: Callable[[Any], bool]
) -> dict[str, Any]:
    """Returns the wanted arguments in nested dictionaries, none of which is empty."""

    def selected(entries: dict[str, Any]) -> dict[str, Any]:
        inner = {
            name: selected(entry) if isinstance(entry, dict) else entry
            for name, entry in entries.items()
        }
        return {
            name: entry
            for name, entry in inner.items()
            if (entry if isinstance(entry, dict) else is_wanted(entry))
        }

    return selected(distribution_utils.parameters_to_dict(params))


def distribution_from_spec(
    spec: Any, new_distribution_params: types.NestedTensor
) -> types.NestedDistribution:
    """Makes a nest of distributions from the tensors of `get_distribution_params`.

    Args:
      spec: As for `get_distribution_params_spec`.
      new_distribution_params: The tensors, with any outer dimensions.
    """
    return tree.map_structure_up_to(
        spec,
        lambda one, tensors: distribution_utils.make_from_parameters(
            distribution_utils.merge_to_parameters_from_dict(one.parameters, tensors)
        ),
        spec,
        new_distribution_params,
    )


def nested_kl_divergence(
    nested_from_distribution: types.NestedDistribution,
    nested_to_distribution: types.NestedDistribution,
    outer_dims: Sequence[int] = (),
) -> tf.Tensor:
    """Returns `KL(from || to)` of two nests of distributions, added up.

    Args:
      nested_from_distribution: A nest of distributions.
      nested_to_distribution: A nest of the same structure.
      outer_dims: The dimensions to keep; all others are summed over.

    Raises:
      TypeError: If the structures differ.
      ValueError: If the structures differ.
    """
    tf.nest.assert_same_structure(nested_from_distribution, nested_to_distribution)
    divergences = [
        one.kl_divergence(other)
        for one, other in zip(
            tf.nest.flatten(nested_from_distribution),
            tf.nest.flatten(nested_to_distribution),
            strict=True,
        )
    ]
    return tf.add_n(
        [
            tf.reduce_sum(kl, [i for i in range(kl.shape.rank) if i not in outer_dims])
            for kl in divergences
        ]
    )
