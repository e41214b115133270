"""Variables of networks: finding, comparing, copying and softly updating them.

A Keras 3 variable wraps a `tf.Variable`; the functions here take either kind.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfrl.utils import number_checks


class VariableList(list[tf.Variable]):
    """A list of variables that can be called, and then returns itself.

    TF-Agents has `agent.variables` as a property, and `policy.variables()` as a method.
    """

    def __call__(self) -> VariableList:
        """Returns the list."""
        return self


def as_tf_variable(variable: Any) -> tf.Variable:
    """Returns the `tf.Variable` behind a Keras variable, or the variable itself."""
    return variable.value if isinstance(variable, keras.Variable) else variable


def as_tf_variables(variables: Iterable[Any]) -> list[tf.Variable]:
    """Returns the `tf.Variable`s behind `variables`, each once, in order."""
    unique = {id(v): v for v in map(as_tf_variable, variables)}
    return list(unique.values())


def trainable_variables(networks: Sequence[Any]) -> list[Any]:
    """Returns the trainable variables of networks, each once, in order."""
    found = [v for network in networks for v in network.trainable_variables]
    return list({id(as_tf_variable(v)): v for v in found}.values())


def tracked_variables(module: Any) -> list[tf.Variable]:
    """Returns all variables that `tf.train.Checkpoint` finds in `module`.

    The states of `tf.random.Generator`s are left out, because drawing changes them.
    """
    parts = tf.train.TrackableView(module).descendants()
    states = {id(p.state) for p in parts if isinstance(p, tf.random.Generator)}
    found = as_tf_variables(
        p for p in parts if isinstance(p, tf.Variable | keras.Variable)
    )
    return [v for v in found if id(v) not in states]


def create_variable(
    name: str,
    initial_value: Any = 0,
    shape: Sequence[int] | None = (),
    dtype: tf.DType = tf.int64,
    use_local_variable: bool = False,
    trainable: bool = False,
    initializer: Any = None,
    unique_name: bool = True,
) -> tf.Variable:
    """Creates a `tf.Variable`, from `initial_value` or from `initializer(shape)`.

    With a shape of None, the variable has the shape of the initial value. An
    `initializer` that cannot be called is used as the value. `use_local_variable` and
    `unique_name` are arguments of TensorFlow 1 and have no effect.
    """
    del use_local_variable, unique_name
    if callable(initializer):
        value = initializer(shape, dtype=dtype)
    elif initializer is not None:
        value = tf.cast(initializer, dtype)
    else:
        value = tf.cast(initial_value, dtype)
        if shape is not None:
            value = tf.broadcast_to(value, shape)
    return tf.Variable(value, trainable=trainable, dtype=dtype, name=name)


def soft_variables_update(
    source_variables: Iterable[Any],
    target_variables: Iterable[Any],
    tau: float | tf.Tensor = 1.0,
    tau_non_trainable: float | tf.Tensor | None = None,
    sort_variables_by_name: bool = False,
) -> None:
    """Moves each target towards its source: `t <- (1 - tau) t + tau s`.

    Args:
      source_variables: Variables to read.
      target_variables: Variables to update, in the same order and of the same shapes.
      tau: The step, in [0, 1]; 0 changes nothing, 1 copies.
      tau_non_trainable: The step for variables that are not trainable, such as
        batch-normalisation statistics; `tau` if None.
      sort_variables_by_name: Whether to pair the variables by sorted name instead of by
        order.

    Raises:
      ValueError: If a tau is outside [0, 1], or the lists differ in length.
    """
    tau_non_trainable = tau if tau_non_trainable is None else tau_non_trainable
    for name, value in (("tau", tau), ("tau_non_trainable", tau_non_trainable)):
        number_checks.check_number(
            name, value, 0, 1, remedy="0 keeps the target, 1 copies the source"
        )
    sources, targets = list(source_variables), list(target_variables)
    if sort_variables_by_name:
        sources.sort(key=lambda v: v.name)
        targets.sort(key=lambda v: v.name)
    if len(sources) != len(targets):
        raise ValueError(
            "source_variables and target_variables: expected lists of the same length, "
            f"got {len(sources)} and {len(targets)}; pass the variables of two "
            "networks of the same architecture, both built."
        )
    for source, target in zip(sources, targets, strict=True):
        step = tau if target.trainable else tau_non_trainable
        if isinstance(step, numbers.Real) and step == 0:
            continue
        source, target = as_tf_variable(source), as_tf_variable(target)
        if source is target:  # For example, statistics that both networks share.
            continue
        copies = isinstance(step, numbers.Real) and step == 1
        # Integers, such as a dropout's counters, have no intermediate values.
        if copies or not target.dtype.is_floating:
            target.assign(source)
        else:
            target.assign_add(tf.cast(step, target.dtype) * (source - target))


def extract_shared_variables(
    variables_1: Iterable[Any], variables_2: Iterable[Any]
) -> list[Any]:
    """Returns the members of `variables_1` that `variables_2` holds too."""
    ids = {id(as_tf_variable(v)) for v in variables_2}
    return [v for v in variables_1 if id(as_tf_variable(v)) in ids]


def deduped_network_variables(network: Any, *others: Any) -> list[Any]:
    """Returns the variables of `network` that the `others` do not hold."""
    shared = {id(as_tf_variable(v)) for other in others for v in other.variables}
    return [v for v in network.variables if id(as_tf_variable(v)) not in shared]


def check_no_shared_variables(network_1: Any, network_2: Any) -> None:
    """Raises a ValueError if the networks share a trainable variable."""
    shared = extract_shared_variables(
        network_1.trainable_variables, network_2.trainable_variables
    )
    if shared:
        raise ValueError(
            f"networks {network_1.name!r} and {network_2.name!r}: expected no "
            "trainable variables in common, but they share "
            f"{[v.name for v in shared]}; give each network its own layers."
        )


def check_matching_networks(network_1: Any, network_2: Any) -> None:
    """Raises a ValueError unless two networks have equal specs and variables' shapes.

    The input specs, the state specs, and the number, shapes and dtypes of the variables
    are compared.
    """
    _check_equal("input_tensor_spec", network_1, network_2)
    _check_equal("state_spec", network_1, network_2)
    shapes_1, shapes_2 = (
        [(tuple(v.shape), tf.as_dtype(v.dtype).name) for v in network.variables]
        for network in (network_1, network_2)
    )
    if shapes_1 != shapes_2:
        raise ValueError(
            f"networks {network_1.name!r} and {network_2.name!r}: expected variables "
            f"of the same shapes and dtypes, got {shapes_1} and {shapes_2}; build both "
            "with the same arguments."
        )


def _check_equal(attribute: str, network_1: Any, network_2: Any) -> None:
    values = getattr(network_1, attribute), getattr(network_2, attribute)
    if values[0] != values[1]:
        raise ValueError(
            f"networks {network_1.name!r} and {network_2.name!r}: expected the same "
            f"{attribute}, got {values[0]} and {values[1]}; build both with the same "
            "specs."
        )


def maybe_copy_target_network_with_checks(
    network: Any,
    target_network: Any = None,
    name: str = "TargetNetwork",
    input_spec: Any = None,
) -> Any:
    """Returns a built target for `network`: `target_network`, or a fresh copy.

    Raises:
      ValueError: If the networks share trainable variables or do not match.
    """
    if target_network is None:
        target_network = network.copy(name=name)
    target_network.create_variables(input_spec)
    check_no_shared_variables(network, target_network)
    check_matching_networks(network, target_network)
    return target_network
