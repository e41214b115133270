"""Loads EnvPool's environments: batches that are stepped by threads in C++.

Weng et al. 2022, "EnvPool: A Highly Parallel Reinforcement Learning Environment
Execution Engine". Needs the extra: `pip install 'tfrl[envpool]'`, on Linux, macOS or
Windows.

A task's name with "envpool/" before it is the name of an environment, as in
`tfrl.PPO("envpool/HalfCheetah-v4")`; `load` also takes options.

EnvPool is worthwhile if a step takes long, as in MuJoCo. A step of classic control
takes less time than a call of EnvPool. Atari games are loaded faster by `suite_atari`,
and resume there.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrl.environments import extras
from tfrl.environments.gymnasium import (
    envpool_vector_env,
    vector_py_environment,
)
from tfrl.utils import number_checks

PREFIX = "envpool/"  # Of the names of environments.
_EXTRA = "pip install 'tfrl[envpool]'"
_MOST_THREADS = 1000
# Options that are checked here, or that cannot end the process; others are tried.
_KNOWN = {
    "base_path",
    "difficulty",
    "frame_skip",
    "img_height",
    "img_width",
    "mode",
    "noop_max",
    "num_threads",
    "repeat_action_probability",
    "reward_threshold",
    "stack_num",
    "thread_affinity_offset",
}
_PROGRAMS = (".py", ".pyc", ".pyi", ".so", ".pyd")
_CRASHES = ("Cig-v1", "MultiDuel-v1")  # They end the process, with EnvPool 1.2.5.

# Options of EnvPool that are not for users, and what to do instead.
_REMEDIES = {
    "batch_size": "leave it out, because all members step together",
    "env_seed": "call seed(...) of the environment",
    "gym_reset_return_info": "leave it out, because a reset always returns it",
    "max_episode_steps": "give load the argument max_episode_steps",
    "max_num_players": "leave it out, because only tasks of one player are loaded",
    "num_envs": "give load the argument num_envs",
    "render_mode": "leave it out for 'rgb_array'",
    "seed": "call seed(...) of the environment",
    "task": "give load the argument environment_name",
}


def is_available() -> bool:
    """Whether the extra is installed."""
    return extras.is_installed("envpool")


def names() -> list[str]:
    """Returns the names of EnvPool's environments; none if it is not installed."""
    if not is_available():
        return []
    import envpool

    return [PREFIX + task for task in envpool.list_all_envs()]


def load_batch(
    environment_name: str, num_envs: int, *, is_training: bool
) -> vector_py_environment.VectorPyEnvironment:
    """Makes an environment by its name; see `load`.

    Args:
      environment_name: The name, such as "envpool/HalfCheetah-v4".
      num_envs: The number of members.
      is_training: Whether, in an Atari game, a lost life terminates the episode and
        rewards become their signs.
    """
    options = {}
    if is_training and _is_of(_task_of(environment_name), "atari"):
        options = {"episodic_life": True, "reward_clip": True}
    return load(environment_name, num_envs, envpool_kwargs=options)


def find_spaces(environment_name: str) -> envpool_vector_env.EnvPoolVectorEnv:
    """Returns an environment without a pool, for its spaces; see `load_batch`.

    It needs no TensorFlow.

    Raises:
      ImportError: If the extra, or a library that the task needs, is not installed.
      ValueError: See `load`.
    """
    return _make_vector_env(environment_name, 1, {})


def draws(environment_name: str) -> bool:
    """Whether EnvPool draws an environment; see `load_batch`."""
    return envpool_vector_env.draws(_task_of(environment_name))


def load(
    environment_name: str,
    num_envs: int = 1,
    discount: float = 1.0,
    max_episode_steps: int | None = None,
    *,
    envpool_kwargs: Mapping[str, Any] | None = None,
) -> vector_py_environment.VectorPyEnvironment:
    """Makes a batch of one of EnvPool's tasks.

    As in every batched environment of tfrl, the step after a member's LAST step ignores
    that member's action and returns its FIRST step. A termination has discount 0, even
    in the step that reaches the time limit.

    Observations and actions of float64 become float32, and pictures `[C, H, W]` become
    `[H, W, C]`. Integer actions are checked against their bounds, because EnvPool does
    not check them. VizDoom's actions are the combinations of its buttons, unless
    `use_combined_action` is False.

    `seed(s)` gives member `i` the seed `s + i`, and takes effect at the next `reset`,
    which makes new members: about 0.2 s for an Atari game. Without a seed, every
    environment draws different random numbers.

    The state of EnvPool's members cannot be saved. A checkpoint leaves it out with a
    warning, and a resumed run begins new episodes.

    Args:
      environment_name: EnvPool's name of the task, such as "Pong-v5", "CartPole-v1" or
        "HalfCheetah-v5", with or without "envpool/"; `envpool.list_all_envs()` lists
        them.
      num_envs: The number of members.
      discount: The discount of every step but the first and a termination.
      max_episode_steps: The number of steps after which an episode is truncated; None
        for the registered limit, 0 for no limit.
      envpool_kwargs: Options of EnvPool, such as `num_threads` (by default one for each
        member or core), and of the task, such as `frame_skip`. Options with which
        EnvPool might crash are tried in another process first, which takes a second.

    Raises:
      ImportError: If the extra is not installed.
      ValueError: If there is no such task or option, a number is too small, or the task
        has several players, or would end the process.
    """
    _check_numbers(num_envs, max_episode_steps)
    vector_env = _make_vector_env(
        environment_name, num_envs, envpool_kwargs or {}, max_episode_steps
    )
    return vector_py_environment.VectorPyEnvironment(vector_env, discount)


def _make_vector_env(
    name: str,
    num_envs: int,
    given: Mapping[str, Any],
    max_episode_steps: int | None = None,
) -> envpool_vector_env.EnvPoolVectorEnv:
    """Returns the task as Gymnasium's environment, with the options that checks allow.

    Its pool is made by the first reset.
    """
    task = _task_of(name)
    _check_options(task, given)
    options = {**_usual_options(task), **given}
    if max_episode_steps is not None:
        limit = max_episode_steps or envpool_vector_env.NO_LIMIT
        options["max_episode_steps"] = limit
    pool_spec = _make_spec(task, num_envs, options)
    return envpool_vector_env.EnvPoolVectorEnv(task, pool_spec, options)


def _usual_options(name: str) -> dict[str, Any]:
    """Returns the options of a task that differ from EnvPool's defaults."""
    if _is_of(name, "vizdoom"):
        return {"use_combined_action": True}
    if _is_of(name, "jumanji"):
        # EnvPool 1.2.5 looks for Sudoku's boards beside the files of other tasks.
        package = importlib.util.find_spec("envpool")
        assert package is not None
        return {"base_path": os.path.dirname(str(package.origin))}
    return {}


def _is_of(name: str, folder: str) -> bool:
    return envpool_vector_env.folder(name) == folder


def _check_numbers(num_envs: int, max_episode_steps: int | None) -> None:
    number_checks.check_sizes(num_envs=num_envs)
    number_checks.check_integer(
        "max_episode_steps",
        max_episode_steps,
        0,
        optional=True,
        remedy="0 sets no limit; leave it out for the registered one",
    )


def _make_spec(name: str, num_envs: int, options: Mapping[str, Any]) -> Any:
    """Returns EnvPool's spec of the task."""
    import envpool

    try:
        with envpool_vector_env.quiet():
            pool_spec = envpool.make_spec(name, num_envs=num_envs, **options)
    except TypeError as error:
        known = _defaults(name).keys()
        unknown = sorted(options.keys() - known)
        if not unknown:
            raise
        raise ValueError(
            f"envpool_kwargs: got {', '.join(unknown)}, expected options of {name}; "
            f"choose from {', '.join(sorted(known - _REMEDIES.keys()))}."
        ) from error
    players = pool_spec.config.max_num_players
    if players != 1:
        raise ValueError(
            f"environment_name: got {name!r}, a task of {players} players, expected "
            "one of a single player, because one player is supported; step EnvPool "
            "itself in a PyEnvironment of your own."
        )
    return pool_spec


def _task_of(name: str) -> str:
    """Returns EnvPool's name of a task that it has and that can be made."""
    extras.require("suite_envpool", _EXTRA, "envpool")
    import envpool

    task = name.removeprefix(PREFIX)
    prefix = PREFIX if task != name else ""
    if task in _CRASHES:
        raise ValueError(
            f"environment_name: got {name!r}, expected another task, because EnvPool "
            "ends the process that makes it; take another map of VizDoom."
        )
    tasks = envpool.list_all_envs()
    if task in tasks:
        return task
    own = (task, task.rpartition("/")[2])
    found = [x for each in own for x in difflib.get_close_matches(each, tasks)]
    near = [prefix + x for x in dict.fromkeys(found)][:3]
    suggestion = (
        "did you mean " + " or ".join(near) + "?"
        if near
        else "envpool.list_all_envs() lists them."
    )
    raise ValueError(
        f"environment_name: got {name!r}, expected a task of EnvPool; {suggestion}"
    )


def _defaults(name: str) -> dict[str, Any]:
    """Returns the options of a task and their defaults."""
    import envpool

    with envpool_vector_env.quiet():
        return envpool.make_spec(name).config._asdict()


def _check_options(name: str, options: Mapping[str, Any]) -> None:
    """Raises an error for options that are internal, or that would end the process."""
    for option in options:
        if option in _REMEDIES:
            raise ValueError(
                f"envpool_kwargs: got {option!r}, expected options of the task; "
                f"{_REMEDIES[option]}."
            )
    if not options:
        return
    defaults = _defaults(name)
    for option, value in options.items():
        default = defaults.get(option)
        if isinstance(default, str) and not isinstance(value, str):
            raise ValueError(
                f"envpool_kwargs: got {value!r} of type {type(value).__name__} for "
                f"{option!r}, expected a str; leave it out for {default!r}."
            )
        if (
            isinstance(value, int | np.integer)
            and isinstance(default, int)
            and not isinstance(default, bool)
        ):
            # EnvPool ends the process if a size or a period is below 1.
            number_checks.check_integer(
                f"envpool_kwargs[{option!r}]",
                int(value),
                min(default, 1),
                remedy=f"leave it out for {default}",
            )
    if options.get("num_threads", 0) > _MOST_THREADS:
        raise ValueError(
            f"envpool_kwargs['num_threads']: got {options['num_threads']}, expected "
            f"at most {_MOST_THREADS}; leave it out for one for each member or core."
        )
    if "base_path" in options:
        _check_base_path(name, options["base_path"], defaults["base_path"])
    if any(
        option not in _KNOWN and not isinstance(defaults[option], bool)
        for option in options.keys() & defaults.keys()
    ):
        envpool_vector_env.try_out(name, options)


def _check_base_path(name: str, base_path: Any, default: str) -> None:
    """Raises an error if files of a task are missing, which would end the process."""
    folder = envpool_vector_env.folder(name)
    for file in sorted(pathlib.Path(default, folder).rglob("*")):
        relative = file.relative_to(default)
        if (
            file.is_file()
            and file.suffix not in _PROGRAMS
            and not os.path.isfile(os.path.join(base_path, relative))
        ):
            raise ValueError(
                f"envpool_kwargs['base_path']: got {base_path!r}, expected a folder "
                f"with EnvPool's files, such as {relative}; leave it out for {default}."
            )
