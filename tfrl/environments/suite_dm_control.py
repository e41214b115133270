"""Loads the DeepMind Control Suite: continuous control from states or pixels.

Needs the extra: `pip install 'tfrl[dm-control]'`, for Python 3.11 and 3.12. Without a
display the tasks are rendered with EGL (see `headless`), unless `MUJOCO_GL` is set.
dm_control reads `MUJOCO_GL` when it is imported, and may then load Mesa, which crashes
beside TensorFlow unless both are loaded as `load` does it. A program without a display
should therefore call `load` before it imports dm_control.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from absl import logging as absl_logging

from tfrl.environments import (
    dm_control_wrapper,
    extras,
    py_environment,
)
from tfrl.environments.gymnasium import headless

_EnvWrappers = Sequence[
    Callable[[py_environment.PyEnvironment], py_environment.PyEnvironment]
]

_TASK_NAME = re.compile(r"dm_control/(\w+)-(\w+)")


def is_available() -> bool:
    """Whether the extra is installed."""
    return extras.is_installed("dm_control")


def is_task(environment_name: str) -> bool:
    """Whether a name is the name of a task for `load_task`."""
    return _TASK_NAME.fullmatch(environment_name) is not None


def load_task(environment_name: str) -> py_environment.PyEnvironment:
    """Makes a task by its name; see `load`.

    Args:
      environment_name: The domain and the task, such as "dm_control/cartpole-balance".

    Raises:
      ImportError: If the extra is not installed.
      ValueError: If there is no such task.
    """
    return load(*_domain_and_task(environment_name))


def check_task(environment_name: str) -> None:
    """Checks the name of a task for `load_task`.

    Raises:
      ImportError: If the extra is not installed.
      ValueError: If there is no such task.
    """
    _suite_with(*_domain_and_task(environment_name))


def _domain_and_task(environment_name: str) -> tuple[str, str]:
    match = _TASK_NAME.fullmatch(environment_name)
    if match is None:
        raise ValueError(
            f"environment_name: got {environment_name!r}, expected a name such as "
            "dm_control/cartpole-balance; write it so."
        )
    domain, task = match.groups()
    return domain, task


def load(
    domain_name: str,
    task_name: str,
    task_kwargs: Mapping[str, Any] | None = None,
    environment_kwargs: Mapping[str, Any] | None = None,
    visualize_reward: bool = False,
    render_kwargs: Mapping[str, Any] | None = None,
    env_wrappers: _EnvWrappers = (),
) -> py_environment.PyEnvironment:
    """Makes a task; observations are a dict of float32 arrays.

    Episodes are truncated, with discount 1, after the task's own time limit, 1,000
    steps for most.

    Args:
      domain_name: The domain, such as "cartpole".
      task_name: The task in that domain, such as "swingup".
      task_kwargs: Keyword arguments for the task: `random` seeds it, `time_limit` is in
        seconds.
      environment_kwargs: Keyword arguments for the environment, such as
        `flat_observation`.
      visualize_reward: Whether objects are coloured by the reward in pictures.
      render_kwargs: Keyword arguments for `physics.render`, such as `height`, `width`
        and `camera_id`.
      env_wrappers: Applied in turn to the `PyEnvironment`.

    Raises:
      ImportError: If the extra is not installed.
      ValueError: If there is no such task.
    """
    env = _load_dm_env(
        domain_name, task_name, task_kwargs, environment_kwargs, visualize_reward
    )
    return _wrap(env, task_kwargs, render_kwargs, env_wrappers)


def load_pixels(
    domain_name: str,
    task_name: str,
    observation_key: str = "pixels",
    pixels_only: bool = True,
    task_kwargs: Mapping[str, Any] | None = None,
    environment_kwargs: Mapping[str, Any] | None = None,
    visualize_reward: bool = False,
    render_kwargs: Mapping[str, Any] | None = None,
    env_wrappers: _EnvWrappers = (),
    env_state_wrappers: Sequence[Callable[[Any], Any]] = (),
) -> py_environment.PyEnvironment:
    """Makes a task whose observations are pictures, uint8 `[height, width, 3]`.

    Args:
      domain_name: The domain, such as "cartpole".
      task_name: The task in that domain, such as "swingup".
      observation_key: The key of the picture in the dict of observations.
      pixels_only: Whether the other observations are left out.
      task_kwargs: Keyword arguments for the task: `random` seeds it, `time_limit` is in
        seconds.
      environment_kwargs: Keyword arguments for the environment.
      visualize_reward: Whether objects are coloured by the reward.
      render_kwargs: Keyword arguments for `physics.render`; by default the pictures
        have `height` 240 and `width` 320.
      env_wrappers: Applied in turn to the `PyEnvironment`.
      env_state_wrappers: Applied in turn to the dm_control environment, before the
        pictures are added.

    Raises:
      ImportError: If the extra is not installed.
      ValueError: If there is no such task, or its observations have the key already.
    """
    env = _load_dm_env(
        domain_name, task_name, task_kwargs, environment_kwargs, visualize_reward
    )
    for env_state_wrapper in env_state_wrappers:
        env = env_state_wrapper(env)
    from dm_control.suite.wrappers import pixels

    env = pixels.Wrapper(
        env,
        pixels_only=pixels_only,
        render_kwargs=dict(render_kwargs or {}),
        observation_key=observation_key,
    )
    return _wrap(env, task_kwargs, render_kwargs, env_wrappers)


def _load_dm_env(
    domain_name: str,
    task_name: str,
    task_kwargs: Mapping[str, Any] | None,
    environment_kwargs: Mapping[str, Any] | None,
    visualize_reward: bool,
) -> Any:
    suite = _suite_with(domain_name, task_name)
    with _model_warnings_omitted():
        return suite.load(
            domain_name,
            task_name,
            task_kwargs=None if task_kwargs is None else dict(task_kwargs),
            environment_kwargs=(
                None if environment_kwargs is None else dict(environment_kwargs)
            ),
            visualize_reward=visualize_reward,
        )


@contextlib.contextmanager
def _model_warnings_omitted() -> Iterator[None]:
    """Omits MuJoCo's warnings that words of dm_control's models are deprecated.

    dm_control gives them to absl's logger, one for each cheetah that is made.
    """

    def is_of_use(record: logging.LogRecord) -> bool:
        return "is deprecated" not in record.getMessage()

    logger = absl_logging.get_absl_logger()
    logger.addFilter(is_of_use)
    try:
        yield
    finally:
        logger.removeFilter(is_of_use)


def _suite_with(domain_name: str, task_name: str) -> Any:
    """Imports the suite, and checks that it has a task."""
    extras.require(
        "suite_dm_control",
        "pip install 'tfrl[dm-control]'",
        "dm_control",
        note=(
            "on Python 3.11 or 3.12: labmaze, which it needs, has no release for newer "
            "versions"
            if sys.version_info >= (3, 13)
            else ""
        ),
    )
    # TensorFlow must be imported first. Without a display, dm_control loads Mesa, which
    # has an LLVM, too, and with Mesa loaded the import ends in a segmentation fault.
    import tensorflow  # noqa: F401

    headless.prepare_mujoco()
    from dm_control import suite

    if (domain_name, task_name) not in suite.ALL_TASKS:
        tasks = sorted(
            task for domain, task in suite.ALL_TASKS if domain == domain_name
        )
        where = "task_name" if tasks else "domain_name"
        known = tasks or sorted({domain for domain, _ in suite.ALL_TASKS})
        raise ValueError(
            f"{where}: got {(domain_name, task_name)}, expected a task of the suite; "
            f"choose one of {', '.join(known)}."
        )
    return suite


def _wrap(
    env: Any,
    task_kwargs: Mapping[str, Any] | None,
    render_kwargs: Mapping[str, Any] | None,
    env_wrappers: _EnvWrappers,
) -> py_environment.PyEnvironment:
    environment: py_environment.PyEnvironment = dm_control_wrapper.DmControlWrapper(
        env, render_kwargs
    )
    environment._is_seeded = (task_kwargs or {}).get("random") is not None
    for env_wrapper in env_wrappers:
        environment = env_wrapper(environment)
    return environment
