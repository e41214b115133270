"""Whether the episodes of an environment are known to end after some steps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import dm_env
import gymnasium

from tfrl import environments
from tfrl.compilation import internals


def find(environment: Any) -> int | None:
    """Returns the number of steps after which an environment truncates its episodes.

    Args:
      environment: A `TFEnvironment`, or anything that is inside of one.

    Returns:
      The limit of the outermost wrapper that has one; None if there is none to be
      found, as in an environment whose own code ends its episodes.
    """
    repeats = 1
    for layer in layers(environment):
        limit = _own(layer)
        if limit is not None and math.isfinite(limit):
            return math.ceil(limit / repeats)
        if isinstance(layer, environments.wrappers.ActionRepeat):
            repeats *= layer.times
    return None


def layers(environment: Any) -> Iterator[Any]:
    """Yields an environment and those that it wraps, the outermost first.

    Args:
      environment: See `find`. Of a batch, the first member is inside.
    """
    while environment is not None:
        yield environment
        environment = _inside(environment)


def _own(environment: Any) -> float | None:
    """Returns the limit that an environment or a wrapper itself sets, or None."""
    if isinstance(environment, environments.native.NativeEnvironment):
        return environment.dynamics.max_episode_steps
    if isinstance(environment, environments.wrappers.TimeLimit):
        return environment.duration
    if isinstance(environment, environments.wrappers.FixedLength):
        return environment.fix_length
    if isinstance(environment, gymnasium.wrappers.TimeLimit):
        return getattr(environment, internals.GYMNASIUM_STEP_LIMIT)
    if isinstance(environment, gymnasium.Env | gymnasium.vector.VectorEnv):
        return getattr(environment.spec, "max_episode_steps", None)
    if isinstance(environment, dm_env.Environment):
        # It may be inf, and environments other than dm_control's have none.
        return getattr(environment, internals.DM_CONTROL_STEP_LIMIT, None)
    return None


def _inside(environment: Any) -> Any:
    """Returns what a wrapper wraps, or the first member of a batch, or None."""
    for kind, name in (
        (environments.TFPyEnvironment, "pyenv"),
        (environments.VectorPyEnvironment, "gym"),
        (environments.GymnasiumWrapper, "gym"),
        (environments.DmEnvWrapper, "dm_env"),
        (gymnasium.Wrapper, "env"),
    ):
        if isinstance(environment, kind):
            return getattr(environment, name)
    if isinstance(
        environment,
        environments.wrappers.PyEnvironmentBaseWrapper
        | environments.tf_wrappers.TFEnvironmentBaseWrapper,
    ):
        return environment.wrapped_env()
    if isinstance(
        environment, environments.BatchedPyEnvironment | gymnasium.vector.SyncVectorEnv
    ):
        return environment.envs[0]
    return None
