"""Makes the runs that one compiled program trains side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tfrl import environments, train
from tfrl.environments import suites

if TYPE_CHECKING:
    from tfrl.algorithms.algorithm import Algorithm


def obstacle(
    kind: type[Algorithm], settings: Any, environment: Any, differing: Iterable[str]
) -> str:
    """Returns the reason why one program cannot train the runs; empty if it can.

    Args:
      kind: The algorithm's class.
      settings: The settings that all runs have.
      environment: See `suites.find_dynamics`.
      differing: The names of the fields in which the runs differ.
    """
    if not kind.supports_sweep:
        return f"the loop of {kind.title} trains one run"
    others = sorted(set(differing) - kind.Settings.live())
    if others:
        return f"{', '.join(others)} would change the program"
    bins = getattr(settings, "num_action_bins", 0)
    dynamics = suites.find_dynamics(environment, bins)
    if dynamics is None:
        name = environment if isinstance(environment, str) else "the environment"
        return f"{name} is not written in TensorFlow"
    if dynamics.max_episode_steps is None:
        return "the environment has no time limit"
    return "" if settings.jit_compile else "jit_compile is False"


def make_loop(
    kind: type[Algorithm],
    settings: Any,
    differing: Iterable[str],
    dynamics: Any,
    environment_name: str,
) -> Any:
    """Makes the loop of a run, as if it were trained alone.

    Args:
      kind: The algorithm's class.
      settings: The settings of the run.
      differing: The names of the live fields in which runs of the program differ, for
        which the loop has variables.
      dynamics: See `suites.find_dynamics`.
      environment_name: The environment's name.
    """
    import tensorflow as tf

    with train.device_scope(settings.device):
        variables = {
            name: tf.Variable(float(getattr(settings, name)), trainable=False)
            for name in sorted(differing)
        }
        environment = environments.native.NativeEnvironment(
            dynamics, settings.num_envs, settings.seed
        )
    algorithm = kind(
        environment,
        settings=settings.with_variables(variables),
        environment_name=environment_name,
    )
    loop = algorithm.build()
    # A part of the loop holds each variable, or all runs would share it.
    loop.agent.live_settings = list(variables.values())
    return loop
