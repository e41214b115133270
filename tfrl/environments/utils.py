"""Checks an environment, and turns any environment into a `TFEnvironment`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tree

from tfrl.environments import py_environment, tf_environment, tf_py_environment
from tfrl.environments.boundary import time_step_checker
from tfrl.specs import array_spec, matching
from tfrl.trajectories import time_step as ts


def get_tf_env(
    environment: py_environment.PyEnvironment | tf_environment.TFEnvironment,
) -> tf_environment.TFEnvironment:
    """Returns `environment`, wrapped in a `TFPyEnvironment` if it is in Python.

    Raises:
      ValueError: If it is neither a `PyEnvironment` nor a `TFEnvironment`.
    """
    if isinstance(environment, py_environment.PyEnvironment):
        return tf_py_environment.TFPyEnvironment(environment)
    if isinstance(environment, tf_environment.TFEnvironment):
        return environment
    raise ValueError(
        f"environment: got {environment!r} of type {type(environment).__name__}, "
        "expected a PyEnvironment or a TFEnvironment; wrap a Gymnasium environment "
        "with suite_gym.wrap_env."
    )


def validate_py_environment(
    environment: py_environment.PyEnvironment,
    episodes: int = 5,
    observation_and_action_constraint_splitter: (
        Callable[[Any], tuple[Any, Any]] | None
    ) = None,
    *,
    max_episode_steps: int = 100_000,
) -> None:
    """Plays random episodes, and raises an error at the first invalid step.

    It checks structure, shape, dtype, bounds and NaN of every time step, and the order
    of the step types.

    Args:
      environment: The environment; it is reset, and left in mid-episode.
      episodes: The number of episodes to play, summed over all members of a batch.
      observation_and_action_constraint_splitter: Takes an observation and returns it
        without its action mask, and the mask, which is 1 for allowed actions.
      max_episode_steps: The number of steps within which an episode must end.

    Raises:
      ValueError: If a step is not valid. The message names the environment, the field
        and the step.
    """
    splitter = observation_and_action_constraint_splitter
    check = time_step_checker.TimeStepChecker.of(environment)
    name = py_environment.environment_name(environment)
    rng = np.random.default_rng()
    finished = 0
    step = last_end = 1
    time_step = environment.reset()
    allowed = _only(time_step, ts.StepType.FIRST)
    while True:
        _check_step(check(time_step, step), environment, name, step)
        _check_order(time_step, allowed, name, step)
        if np.any(time_step.is_last()):
            finished += int(np.sum(time_step.is_last()))
            last_end = step
        if finished >= episodes:
            return
        if step - last_end >= max_episode_steps:
            raise ValueError(
                f"step_type: got no LAST from {name} in {max_episode_steps} "
                "steps, expected episodes to end; wrap it in a TimeLimit."
            )
        # No reset comes between the rounds of a bandit.
        after_last = ts.StepType.LAST if environment.is_bandit else ts.StepType.FIRST
        allowed = np.where(time_step.is_last(), _mask(after_last), _mask(1) | _mask(2))
        time_step = environment.step(
            _sample_action(environment, time_step.observation, splitter, rng)
        )
        step += 1


def _mask(step_type: Any) -> int:
    """Returns a step type as one bit, so that integers can hold sets of step types."""
    return 1 << int(step_type)


def _only(time_step: ts.TimeStep, step_type: Any) -> np.ndarray:
    return np.full(np.shape(time_step.step_type), _mask(step_type))


def _check_order(
    time_step: ts.TimeStep, allowed: np.ndarray, name: str, step: int
) -> None:
    step_types = np.asarray(time_step.step_type)
    if np.all((step_types >= 0) & (step_types <= 2)) and np.all(
        (1 << step_types) & allowed
    ):
        return
    raise ValueError(
        f"step_type: got {step_types} from environment {name} at step {step}, expected "
        "0 (FIRST) after a reset and after 2 (LAST), and 1 (MID) or 2 otherwise; use "
        "ts.restart, ts.transition, ts.termination and ts.truncation."
    )


def _check_step(
    flat: list[np.ndarray],
    environment: py_environment.PyEnvironment,
    name: str,
    step: int,
) -> None:
    """Raises an error if a value is out of its spec's bounds."""
    specs = tree.flatten_with_path(environment.time_step_spec())
    for (path, spec), array in zip(specs, flat, strict=True):
        if not array_spec.is_bounded(spec):
            continue
        # A bound at the dtype's limit counts as no bound, so an infinity passes.
        if array_spec.is_continuous(spec):
            array = np.where(np.isinf(array), spec.minimum, array)
        problem = matching.outlier(array, spec)
        if problem is not None:
            raise ValueError(
                f"{matching.join(*path)}: {problem}, from environment {name} at step "
                f"{step}; correct the environment, or its spec."
            )


def _sample_action(
    environment: py_environment.PyEnvironment,
    observation: Any,
    splitter: Callable[[Any], tuple[Any, Any]] | None,
    rng: np.random.Generator,
) -> Any:
    spec = environment.action_spec()
    size = environment.batch_size if environment.batched else None
    if splitter is None:
        return array_spec.sample_spec_nest(
            array_spec.bounded_actions(spec), rng, () if size is None else (size,)
        )
    mask = np.asarray(splitter(observation)[1], np.bool_)
    if not mask.any(axis=-1).all():
        raise ValueError(
            f"observation_and_action_constraint_splitter: got the mask {mask}, "
            "expected at least one action to be allowed; correct the environment's "
            "mask."
        )
    # The argmax of random numbers is uniform over the allowed actions.
    choice = np.argmax(np.where(mask, rng.random(mask.shape), -1.0), axis=-1)
    return np.asarray(spec.minimum + choice, spec.dtype)
