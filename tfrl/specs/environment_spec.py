"""`EnvironmentSpec`, which holds the four specs of an environment, as in Acme."""

from __future__ import annotations

from typing import Any, NamedTuple

import dm_env
import numpy as np

from tfrl.specs import array_spec


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
