"""Makes the runs that one compiled program trains side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tfrl import environments, train
from tfrl.algorithms import registry
from tfrl.environments import suites

if TYPE_CHECKING:
    from tfrl.algorithms.algorithm import Algorithm


def obstacle(recipe: Algorithm, environment: Any, differing: Iterable[str]) -> str:
    """Returns the reason why one program cannot train the runs; empty if it can.

    Args:
      recipe: The algorithm, with the settings that all runs have.
      environment: See `suites.find_dynamics`.
      differing: The names of the settings in which the runs differ; perhaps with the
        values that tuning chooses from.
    """
    if not recipe.supports_sweep:
        return f"the loop of {recipe.title} trains one run"
    values = differing if isinstance(differing, Mapping) else {}
    # A rate without a last one is a number, and no schedule.
    switched = {k for k, x in values.items() if isinstance(x, tuple) and None in x}
    others = sorted(set(differing) - recipe.live_settings() | switched)
    if others:
        return f"{', '.join(others)} would change the program"
    dynamics = find_dynamics(recipe, environment)
    if dynamics is None:
        name = environment if isinstance(environment, str) else "the environment"
        return f"{name} is not written in TensorFlow"
    if dynamics.max_episode_steps is None:
        return "the environment has no time limit"
    return "" if recipe.jit_compile else "jit_compile is False"


def find_dynamics(recipe: Algorithm, environment: Any) -> Any:
    """Returns the dynamics of an environment in TensorFlow; None for another one."""
    bins = recipe.settings.get("num_action_bins", 0)
    return suites.find_dynamics(environment, bins)


def make_loop(
    config: Mapping[str, Any], differing: Iterable[str], dynamics: Any
) -> Any:
    """Makes the loop of a run, as if it were trained alone.

    Args:
      config: The configuration of the run; see `registry.algorithm_of`.
      differing: The names of the live settings in which runs of the program differ, for
        which the loop has variables.
      dynamics: See `suites.find_dynamics`.
    """
    import tensorflow as tf

    with train.device_scope(config["device"]):
        variables = {
            name: tf.Variable(float(config[name]), trainable=False)
            for name in sorted(differing)
        }
        environment = environments.native.NativeEnvironment(
            dynamics, config["num_envs"], config["seed"]
        )
    algorithm = registry.algorithm_of(config, environment)
    algorithm.use_variables(variables)
    loop = algorithm.build()
    # A part of the loop holds each variable, or all runs would share it.
    loop.agent.live_settings = list(variables.values())
    return loop
