"""Converts distributions to their classes and constructor arguments, and back.

`Params` holds the class and the constructor's arguments of a distribution. Arguments
that are distributions, bijectors or linear operators are `Params`, too.
`DistributionSpecV2` describes a distribution by a `Params` with specs for tensors.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tree

from tfrl.specs import tensor_spec


def __getattr__(name: str) -> Any:
    # Imported only on access, since the class needs TFP.
    if name == "SquashToSpecNormal":
        from tfrl.distributions import squash_to_spec

        return squash_to_spec.SquashToSpecNormal
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def scale_distribution_to_spec(distribution: Any, spec: Any) -> Any:
    """Squashes a normal distribution into the bounds of `spec`."""
    from tfrl.distributions import squash_to_spec

    return squash_to_spec.SquashToSpecNormal(distribution, spec)


@dataclasses.dataclass
class Params:
    """The class and constructor arguments of an object, recursively.

    Attributes:
      type_: The class.
      params: The arguments that differ from the defaults. An argument that is itself a
        distribution, bijector or linear operator is a `Params`.
    """

    type_: type[Any]
    params: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class DistributionSpecV2:
    """Describes a distribution.

    Attributes:
      event_shape: The shape of an event of the distribution.
      dtype: The dtype of the samples.
      parameters: The parameters, with `tf.TypeSpec`s instead of tensors.
      batch_shape: The batch shape without outer dimensions, such as the number of
        independent scalar actions. It is left out when specs are compared.

    Raises:
      TypeError: If there are tensors among the parameters.
    """

    event_shape: tf.TensorShape
    dtype: tf.DType
    parameters: Params
    batch_shape: tf.TensorShape = dataclasses.field(
        default=tf.TensorShape([]), compare=False, repr=False
    )

    def __post_init__(self) -> None:
        _check_no_tensors(self.parameters)

    @property
    def event_spec(self) -> tf.TensorSpec:
        """The spec of one event."""
        return tf.TensorSpec(self.event_shape, self.dtype)

    @property
    def sample_spec(self) -> tf.TensorSpec:
        """The spec of one sample, which holds the events of the whole batch."""
        return tf.TensorSpec(self.batch_shape.concatenate(self.event_shape), self.dtype)


def get_parameters(value: Any) -> Params:
    """Returns the class and arguments of a distribution, bijector or linear operator.

    Raises:
      TypeError: If `value` has no dictionary `parameters`.
    """
    parameters = getattr(value, "parameters", None)
    if not isinstance(parameters, Mapping):
        raise TypeError(
            f"value: got {value!r} whose parameters are {parameters!r}, expected an "
            "object with a dictionary of them; value.parameters is not available or "
            "is not a dict: pass a distribution, bijector or linear operator."
        )
    signature = inspect.signature(type(value).__init__)
    defaults = {name: p.default for name, p in signature.parameters.items()}

    def convert(leaf: Any) -> Any:
        has_parameters = isinstance(getattr(leaf, "parameters", None), Mapping)
        return get_parameters(leaf) if has_parameters else leaf

    return Params(
        type(value),
        {
            name: tf.nest.map_structure(convert, argument)
            for name, argument in parameters.items()
            if not _is_same(argument, defaults.get(name))
        },
    )


def _is_same(argument: Any, default: Any) -> bool:
    if argument is default:
        return True
    return isinstance(argument, str | bool) and argument == default


def make_from_parameters(value: Params) -> Any:
    """Makes the object that `get_parameters` described."""

    def convert(leaf: Any) -> Any:
        return make_from_parameters(leaf) if isinstance(leaf, Params) else leaf

    return value.type_(
        **{k: tf.nest.map_structure(convert, v) for k, v in value.params.items()}
    )


def parameters_to_dict(value: Params, tensors_only: bool = False) -> dict[str, Any]:
    """Returns nested dictionaries of the arguments, without the classes.

    An argument that is a nest gets a key for each leaf: `name:path/to/leaf`.

    Args:
      value: The result of `get_parameters`.
      tensors_only: Whether to leave out all but tensors and `tf.TypeSpec`s.
    """
    entries: dict[str, Any] = {}
    for name, argument in value.params.items():
        for path, leaf in tree.flatten_with_path(argument):
            key = _leaf_key(name, path)
            if isinstance(leaf, Params):
                entries[key] = parameters_to_dict(leaf, tensors_only)
            elif (
                not tensors_only or tf.is_tensor(leaf) or isinstance(leaf, tf.TypeSpec)
            ):
                entries[key] = leaf
    return entries


def merge_to_parameters_from_dict(
    value: Params, params_dict: Mapping[str, Any] | None
) -> Params:
    """Returns `value` with its arguments replaced by a dictionary's entries.

    Args:
      value: The parameters from which the dictionary was made.
      params_dict: Nested dictionaries of arguments, as `parameters_to_dict` returns
        them. Missing arguments are taken from `value`. An argument that is a nest needs
        all of its leaves, or none.

    Returns:
      A new `Params`.

    Raises:
      ValueError: If there are keys that `value` does not have.
      KeyError: If some leaves of a nest are missing.
    """
    given = dict(params_dict or {})
    merged = {
        name: _merge_argument(name, argument, given)
        for name, argument in value.params.items()
    }
    if given:
        raise ValueError(
            f"params_dict: got the keys {sorted(given)}, expected some of "
            f"{sorted(parameters_to_dict(value))}: params_dict had keys that were not "
            "part of value.params; leave them out."
        )
    return Params(value.type_, merged)


def _merge_argument(name: str, argument: Any, given: dict[str, Any]) -> Any:
    """Returns one argument, with its new values popped from `given`."""
    leaves = tree.flatten_with_path(argument)
    keys = [_leaf_key(name, path) for path, _ in leaves]
    found = [key for key in keys if given.get(key) is not None]
    if found and found != keys:
        raise KeyError(
            "params_dict: Only saw partial information from the dictionary for nested "
            f"key {name!r} in params_dict. Entries provided: {found}. Entries "
            f"required: {keys}; add the others, or leave all of them out."
        )
    return tree.unflatten_as(
        argument,
        [
            _merge_leaf(leaf, given.pop(key, None))
            for key, (_, leaf) in zip(keys, leaves, strict=True)
        ],
    )


def _merge_leaf(leaf: Any, replacement: Any) -> Any:
    if isinstance(leaf, Params):
        return merge_to_parameters_from_dict(leaf, replacement)
    return leaf if replacement is None else replacement


def _leaf_key(name: str, path: tuple[Any, ...]) -> str:
    return f"{name}:{'/'.join(map(str, path))}" if path else name


def spec_from_distribution(
    distribution: Any, num_outer_dims: int = 0
) -> DistributionSpecV2:
    """Returns a distribution's spec; its parameters have no outer dimensions."""

    def to_specs(params: Params) -> Params:
        return Params(
            params.type_,
            {k: tf.nest.map_structure(to_spec, v) for k, v in params.params.items()},
        )

    def to_spec(leaf: Any) -> Any:
        if isinstance(leaf, Params):
            return to_specs(leaf)
        if not tf.is_tensor(leaf):
            return leaf
        # A parameter without batch dimensions is shared by the whole batch.
        return tf.TensorSpec(leaf.shape[num_outer_dims:], leaf.dtype)

    return DistributionSpecV2(
        event_shape=distribution.event_shape,
        dtype=distribution.dtype,
        parameters=to_specs(get_parameters(distribution)),
        batch_shape=distribution.batch_shape[num_outer_dims:],
    )


def assert_specs_are_compatible(
    network_output_spec: Any, spec: Any, message_prefix: str
) -> None:
    """Checks that the output specs of a network fit a nest of specs.

    Args:
      network_output_spec: The nest of output specs.
      spec: The expected nest of specs.
      message_prefix: The start of the error message.

    Raises:
      ValueError: If structure, shapes or dtypes differ.
    """

    def event_spec(leaf: Any) -> Any:
        if isinstance(leaf, DistributionSpecV2):
            return leaf.sample_spec
        return tensor_spec.from_spec(leaf)

    events = tf.nest.map_structure(event_spec, network_output_spec)
    message = (
        f"{message_prefix}: the network emits\n{events}\nbut expected is\n{spec}; "
        "build the network for that spec."
    )
    try:
        tf.nest.assert_same_structure(events, spec)
    except (ValueError, TypeError) as error:
        raise ValueError(message) from error
    for event, wanted in zip(
        tf.nest.flatten(events), tf.nest.flatten(spec), strict=True
    ):
        if event.dtype != wanted.dtype or not event.shape.is_compatible_with(
            wanted.shape
        ):
            raise ValueError(message)


def _check_no_tensors(parameters: Params) -> None:
    for leaf in tf.nest.flatten(parameters.params):
        if isinstance(leaf, Params):
            _check_no_tensors(leaf)
        elif tf.is_tensor(leaf):
            raise TypeError(
                f"parameters: got the tensor {leaf} in {parameters}, expected "
                "tf.TypeSpecs: Saw a `Tensor` value in parameters; use "
                "spec_from_distribution."
            )
