"""`EnvironmentSpec`, which holds the four specs of an environment, as in Acme."""

from __future__ import annotations

from typing import Any, NamedTuple

from tfrl.specs import dm_env_specs


class EnvironmentSpec(NamedTuple):
    """The specs of an environment's inputs and outputs, each a nest."""

    observations: Any
    actions: Any
    rewards: Any
    discounts: Any


def make_environment_spec(environment: Any) -> EnvironmentSpec:
    """Returns the specs of an environment of tfrl or dm_env.

    Specs of dm_env are converted to array specs. The specs of a `TFEnvironment` are
    tensor specs.

    Raises:
      TypeError: If the environment has neither tfrl's nor dm_env's methods for specs.
    """
    if hasattr(environment, "time_step_spec"):
        step = environment.time_step_spec()
        return EnvironmentSpec(
            observations=step.observation,
            actions=environment.action_spec(),
            rewards=step.reward,
            discounts=step.discount,
        )
    methods = ("observation_spec", "action_spec", "reward_spec", "discount_spec")
    missing = [name for name in methods if not hasattr(environment, name)]
    if missing:
        raise TypeError(
            f"environment: got {environment!r} of type {type(environment).__name__} "
            f"without {', '.join(missing)}, expected a PyEnvironment, a TFEnvironment "
            "or a dm_env.Environment; load one with suite_gym.load."
        )
    return EnvironmentSpec(
        *(
            dm_env_specs.from_dm_env_spec(getattr(environment, name)())
            for name in methods
        )
    )
