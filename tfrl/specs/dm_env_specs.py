"""The specs of dm_env, their conversion to and from array specs, `EnvironmentSpec`.

`Array`, `BoundedArray` and `DiscreteArray` are dm_env's own classes, for code that was
written for dm_env or Acme. The time steps of both libraries have the same fields; only
the classes of their specs differ.

>>> from tfrl import specs
>>> specs.dm_env_specs.from_dm_env_spec(specs.DiscreteArray(3, name="action"))
BoundedArraySpec(shape=(), dtype=dtype('int32'), name='action', minimum=0, maximum=2)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import dm_env
import numpy as np
import tree
from dm_env import specs as dm_specs

from tfrl.specs import array_spec

Array = dm_specs.Array
BoundedArray = dm_specs.BoundedArray
DiscreteArray = dm_specs.DiscreteArray


def from_dm_env_spec(spec: Any) -> Any:
    """Returns the nest of array specs for a nest of dm_env specs.

    Dtypes and names do not change. A `StringArray` becomes an `ArraySpec` of objects.
    Array specs of tfrl in the nest are not changed.

    Raises:
      ValueError: If something in the nest is not a spec.
    """

    def convert(leaf: Any) -> array_spec.ArraySpec:
        if isinstance(leaf, array_spec.ArraySpec):
            return leaf
        if isinstance(leaf, dm_specs.BoundedArray):
            return array_spec.BoundedArraySpec.from_spec(leaf)
        if isinstance(leaf, dm_specs.Array):
            return array_spec.ArraySpec.from_spec(leaf)
        raise ValueError(
            f"spec: got {leaf!r} of type {type(leaf).__name__} in the nest, expected "
            "specs of dm_env; describe an array with dm_env.specs.Array."
        )

    return tree.map_structure(convert, spec)


def to_dm_env_spec(spec: Any) -> Any:
    """Returns the nest of dm_env specs for a nest of array specs.

    A bounded integer scalar that starts at 0 becomes a `DiscreteArray`.

    Raises:
      ValueError: If something in the nest is not an array spec.
    """

    def convert(leaf: Any) -> dm_specs.Array:
        if not isinstance(leaf, array_spec.ArraySpec):
            raise ValueError(
                f"spec: got {leaf!r} of type {type(leaf).__name__} in the nest, "
                "expected ArraySpecs; convert tensor specs with "
                "tensor_spec.to_array_spec."
            )
        if not isinstance(leaf, array_spec.BoundedArraySpec):
            return dm_specs.Array(leaf.shape, leaf.dtype, leaf.name)
        if _counts_from_zero(leaf):
            return dm_specs.DiscreteArray(int(leaf.num_values), leaf.dtype, leaf.name)
        return dm_specs.BoundedArray(
            leaf.shape, leaf.dtype, leaf.minimum, leaf.maximum, leaf.name
        )

    return tree.map_structure(convert, spec)


def _counts_from_zero(spec: array_spec.BoundedArraySpec) -> bool:
    return (
        spec.shape == ()
        and array_spec.is_discrete(spec)
        and bool(spec.minimum == 0)
        # A range up to the dtype's largest value means that there is no real bound.
        and bool(spec.maximum < np.iinfo(spec.dtype).max)
    )


class EnvironmentSpec(NamedTuple):
    """The specs of an environment's inputs and outputs, each a nest."""

    observations: Any
    actions: Any
    rewards: Any
    discounts: Any


def make_environment_spec(environment: Any) -> EnvironmentSpec:
    """Returns the specs of an environment of tfrl, dm_env or Gymnasium.

    An environment of dm_env gives its own specs, as in Acme. For Gymnasium the result
    is array specs made from the spaces, with a float32 reward and discount, as in
    `suite_gym`. A `PyEnvironment` has array specs, too, and a `TFEnvironment` tensor
    specs. None of them has a batch dimension.

    >>> import gymnasium
    >>> spec = make_environment_spec(gymnasium.make("CartPole-v1"))
    >>> spec.observations.shape, int(spec.actions.num_values), spec.discounts.maximum
    ((4,), 2, array(1., dtype=float32))

    Raises:
      TypeError: If the environment is of another kind.
    """
    # This comes first, since dm_env's wrappers also have the attributes of the wrapped
    # environments.
    is_dm_env = isinstance(environment, dm_env.Environment)
    if hasattr(environment, "time_step_spec") and not is_dm_env:
        step = environment.time_step_spec()
        return EnvironmentSpec(
            observations=step.observation,
            actions=environment.action_spec(),
            rewards=step.reward,
            discounts=step.discount,
        )
    methods = ("observation_spec", "action_spec", "reward_spec", "discount_spec")
    missing = [name for name in methods if not hasattr(environment, name)]
    if not missing:
        return EnvironmentSpec(*(getattr(environment, name)() for name in methods))
    # This import is here, so that environments of other kinds do not import Gymnasium.
    import gymnasium

    if isinstance(environment, gymnasium.Env):
        return _from_spaces(environment)
    raise TypeError(
        f"environment: got {environment!r} of type {type(environment).__name__} "
        f"without {', '.join(missing)}, expected a PyEnvironment, a TFEnvironment, a "
        "dm_env.Environment or a single gymnasium.Env; load one with suite_gym.load."
    )


def _from_spaces(environment: Any) -> EnvironmentSpec:
    from tfrl.specs import gym_spaces

    return EnvironmentSpec(
        observations=gym_spaces.spec_from_gym_space(
            environment.observation_space, name="observation"
        ),
        actions=gym_spaces.spec_from_gym_space(environment.action_space, name="action"),
        rewards=array_spec.ArraySpec((), np.float32, "reward"),
        discounts=array_spec.BoundedArraySpec((), np.float32, 0.0, 1.0, "discount"),
    )
