"""Makes the runs that one compiled program trains side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tfrl import environments, train
from tfrl.algorithms.recipe import Recipe
from tfrl.environments import suites

if TYPE_CHECKING:
    from tfrl.algorithms.builder import Builder


def obstacle(made: Builder, environment: Any, differing: Iterable[str]) -> str:
    """Returns the reason why one program cannot train the runs; empty if it can.

    Args:
      made: The algorithm, with the settings that all runs have.
      environment: See `suites.find_dynamics`.
      differing: The names of the settings in which the runs differ; perhaps with the
        values that tuning chooses from.
    """
    if not made.supports_sweep:
        return f"the loop of {made.title} trains one run"
    values = differing if isinstance(differing, Mapping) else {}
    # A rate without a last one is a number, and no schedule.
    switched = {k for k, x in values.items() if isinstance(x, tuple) and None in x}
    others = sorted(set(differing) - made.live_settings() | switched)
    if others:
        return f"{', '.join(others)} would change the program"
    dynamics = _find_dynamics(made.settings, environment)
    if dynamics is None:
        name = environment if isinstance(environment, str) else "the environment"
        return f"{name} is not written in TensorFlow"
    if dynamics.against is not None:
        return "each run has opponents of its own"
    if dynamics.max_episode_steps is None:
        return "the environment has no time limit"
    return "" if made.jit_compile else "jit_compile is False"


def make_loop(
    recipe: Recipe, differing: Iterable[str], environment: Any
) -> train.TrainingLoop:
    """Makes the loop of a run, as if it were trained alone.

    Args:
      recipe: The recipe of the run.
      differing: The names of the live settings in which runs of the program differ, for
        which the loop has variables.
      environment: See `suites.find_dynamics`.
    """
    import tensorflow as tf

    settings = recipe.settings
    with train.device_scope(settings["device"]):
        variables = {
            name: tf.Variable(float(settings[name]), trainable=False)
            for name in sorted(differing)
        }
        native = environments.native.NativeEnvironment(
            _find_dynamics(settings, environment),
            settings["num_envs"],
            settings["seed"],
        )
    algorithm = recipe.make(native)
    algorithm.use_variables(variables)
    loop = algorithm.build()
    # A part of the loop holds each variable, or all runs would share it.
    loop.agent.live_settings = list(variables.values())
    return loop


def _find_dynamics(settings: Mapping[str, Any], environment: Any) -> Any:
    """Returns the dynamics of an environment in TensorFlow; None for another one."""
    return suites.find_dynamics(environment, settings.get("num_action_bins", 0))
