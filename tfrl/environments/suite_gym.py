"""Loads Gymnasium's registered environments by name.

The time limit is `wrappers.TimeLimit`, which `max_episode_steps` can change;
Gymnasium's own wrapper is left out.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import gymnasium
from gymnasium.envs import registration

from tfrl.environments import (
    extras,
    gymnasium_wrapper,
    py_environment,
    wrappers,
)
from tfrl.environments.gymnasium import headless
from tfrl.system import log

GymEnvWrappers = Sequence[Callable[[gymnasium.Env], gymnasium.Env]]
EnvWrappers = Sequence[
    Callable[[py_environment.PyEnvironment], py_environment.PyEnvironment]
]
TimeLimitWrapperType = Callable[
    [py_environment.PyEnvironment, int], py_environment.PyEnvironment
]

# Maps packages of Gymnasium to tfrl's extra and the module that it brings.
_EXTRAS = {
    "gymnasium.envs.box2d": ("box2d", "Box2D"),
    "gymnasium.envs.mujoco": ("mujoco", "mujoco"),
}
# How the names of MiniGrid's environments begin.
GRIDS: tuple[str, ...] = ("MiniGrid-", "BabyAI-")
# Packages that register environments when they are imported: tfrl's extra, the
# package's module, and the prefix of the environments' names.
_REGISTERED_BY = (
    ("minigrid", "minigrid", GRIDS),
    (
        "robotics",
        "gymnasium_robotics",
        (
            *("Adroit", "AntMaze", "Fetch", "FrankaKitchen", "HandManipulate"),
            *("HandReach", "PointMaze"),
        ),
    ),
)
# Arguments of Gymnasium's MuJoCo tasks that choose a camera.
_CAMERA_OPTIONS = {"camera_id", "camera_name", "default_camera_config"}


def load(
    environment_name: str,
    discount: float = 1.0,
    max_episode_steps: int | None = None,
    gym_env_wrappers: GymEnvWrappers = (),
    env_wrappers: EnvWrappers = (),
    spec_dtype_map: Mapping[type, Any] | None = None,
    gym_kwargs: Mapping[str, Any] | None = None,
    render_kwargs: Mapping[str, Any] | None = None,
) -> py_environment.PyEnvironment:
    """Makes a registered environment and wraps it.

    The environment is made for `render("rgb_array")` if it supports that, unless
    `gym_kwargs` holds another `render_mode`.

    Args:
      environment_name: A name such as "CartPole-v1"; "module:Name-v0" first imports the
        module that registers it, and "CartPole" takes the newest version.
      discount: The discount of every step but the first and a termination.
      max_episode_steps: The number of steps after which an episode is truncated; None
        for the registered limit, 0 for no limit.
      gym_env_wrappers: Applied in turn to the Gymnasium environment.
      env_wrappers: Applied in turn to the `PyEnvironment`, after the time limit.
      spec_dtype_map: Maps classes of spaces to the dtypes of their specs.
      gym_kwargs: Keyword arguments for the environment's constructor.
      render_kwargs: Options of rendering, such as `width`, also passed to the
        environment's constructor.

    Raises:
      ImportError: If the extra that brings the environment is not installed.
      ValueError: If no environment of that name is registered, or the limit is
        negative.
    """
    spec = find_spec(environment_name)
    # Gymnasium's checker looks at the first step only; our checks at every step.
    kwargs = {
        "disable_env_checker": True,
        **make_kwargs(spec, gym_kwargs, render_kwargs),
    }
    with model_warnings_omitted(spec):
        gym_env = gymnasium.make(spec, max_episode_steps=-1, **kwargs)
    if max_episode_steps is None:
        max_episode_steps = spec.max_episode_steps
    if gym_env.unwrapped.spec is not None:
        # Wrappers such as Gymnasium's TimeAwareObservation read it. It is a copy.
        gym_env.unwrapped.spec.max_episode_steps = max_episode_steps or None
    return wrap_env(
        gym_env,
        discount=discount,
        max_episode_steps=max_episode_steps,
        gym_env_wrappers=gym_env_wrappers,
        env_wrappers=env_wrappers,
        spec_dtype_map=spec_dtype_map,
    )


def wrap_env(
    gym_env: gymnasium.Env,
    discount: float = 1.0,
    max_episode_steps: int | None = None,
    gym_env_wrappers: GymEnvWrappers = (),
    time_limit_wrapper: TimeLimitWrapperType = wrappers.TimeLimit,
    env_wrappers: EnvWrappers = (),
    spec_dtype_map: Mapping[type, Any] | None = None,
    auto_reset: bool = True,
    render_kwargs: Mapping[str, Any] | None = None,
) -> py_environment.PyEnvironment:
    """Wraps a Gymnasium environment that you have made yourself.

    A limit that Gymnasium's own TimeLimit already sets stays in force.

    Args:
      gym_env: The environment.
      discount: The discount of every step but the first and a termination.
      max_episode_steps: The number of steps after which an episode is truncated; None
        or 0 adds no limit.
      gym_env_wrappers: Applied in turn to `gym_env`.
      time_limit_wrapper: Called with the environment and the limit, if there is one.
      env_wrappers: Applied in turn to the `PyEnvironment`, after the time limit.
      spec_dtype_map: Maps classes of spaces to the dtypes of their specs.
      auto_reset: Whether the step after a LAST one resets.
      render_kwargs: Keyword arguments for the environment's own `render`.

    Raises:
      ValueError: If the limit is negative.
    """
    for gym_env_wrapper in gym_env_wrappers:
        gym_env = gym_env_wrapper(gym_env)
    environment: py_environment.PyEnvironment = gymnasium_wrapper.GymnasiumWrapper(
        gym_env,
        discount=discount,
        spec_dtype_map=spec_dtype_map,
        auto_reset=auto_reset,
        render_kwargs=render_kwargs,
    )
    if max_episode_steps:
        environment = time_limit_wrapper(environment, max_episode_steps)
    for env_wrapper in env_wrappers:
        environment = env_wrapper(environment)
    return environment


def find_spec(
    environment_name: str, other_names: Iterable[str] = ()
) -> registration.EnvSpec:
    """Returns the registered spec of an environment, without Gymnasium's warnings.

    Args:
      environment_name: The name, or "module:name" to import a module first.
      other_names: Names beside Gymnasium's that the error suggests.

    Raises:
      ImportError: If the extra that brings the environment is not installed.
      ValueError: If no environment of that name is registered. The message names
        similar ones.

    Warns:
      UserWarning: The name has no version; it says which one is taken.
    """
    module, _, name = environment_name.rpartition(":")
    if module:
        import_registrations(environment_name, module)
    elif name not in gymnasium.registry:
        for extra, package, beginnings in _REGISTERED_BY:
            if name.startswith(beginnings):
                install = f"pip install 'tfrl[{extra}]'"
                extras.require(environment_name, install, package)
                import_registrations(environment_name, package)
    spec = gymnasium.registry.get(name)
    if spec is None and (newest := _newest_version(name)):
        spec = gymnasium.registry[newest]
        _say_version(environment_name, newest)
    if spec is None:
        raise ValueError(
            f"environment_name: got {environment_name!r}, expected a name that is "
            f"registered with Gymnasium; {_suggestion(name, other_names)}"
        )
    for package, (extra, dependency) in _EXTRAS.items():
        if str(spec.entry_point).startswith(package):
            install = f"pip install 'tfrl[{extra}]'"
            extras.require(environment_name, install, dependency)
    return spec


def make_kwargs(
    spec: registration.EnvSpec,
    gym_kwargs: Mapping[str, Any] | None = None,
    render_kwargs: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Returns the keyword arguments for making `spec`, including `render_mode`."""
    kwargs = {**(render_kwargs or {}), **(gym_kwargs or {})}
    if "render_mode" not in {**spec.kwargs, **kwargs} and _renders_pictures(spec):
        kwargs["render_mode"] = "rgb_array"
    if kwargs.get("render_mode") == "rgb_array":
        headless.prepare_rendering()
        is_mujoco = str(spec.entry_point).startswith("gymnasium.envs.mujoco")
        if is_mujoco and not _CAMERA_OPTIONS & kwargs.keys():
            # Gymnasium's camera stands still while the body walks out of the picture.
            # Models without a camera of this name keep it.
            kwargs["camera_name"] = "track"
    return kwargs


def import_registrations(environment_name: str, module: str) -> None:
    """Imports a module that registers environments.

    Args:
      environment_name: The name of one of them, for the error.
      module: The module.

    Raises:
      ValueError: There is no such module.
    """
    try:
        if module.startswith("."):
            raise ModuleNotFoundError(f"{module!r} begins with a dot")
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"environment_name: got {environment_name!r}, expected the part before the "
            f"colon to be a module that can be imported ({error}); install the package "
            "that registers the environment."
        ) from error


def _newest_version(name: str) -> str:
    """Returns the newest registered id of a name without a version, '' for others."""
    try:
        namespace, base, version = registration.parse_env_id(name)
    except gymnasium.error.Error:
        return ""
    newest = registration.find_highest_version(namespace, base)
    if version is not None or newest is None:
        return ""
    return registration.get_env_id(namespace, base, newest)


@functools.cache
def _say_version(name: str, newest: str) -> None:
    """Warns once in a process, which makes several environments."""
    warnings.warn(
        f"environment_name: got {name!r}, which has no version; takes the newest one, "
        f"{newest}.",
        UserWarning,
        stacklevel=4,
    )


def _suggestion(name: str, other_names: Iterable[str]) -> str:
    known = [*gymnasium.registry, *other_names]
    lower = {key.lower(): key for key in known}
    if name.startswith("ALE/") and not any(key.startswith("ale/") for key in lower):
        return (
            "Atari games are loaded by tfrl.environments.suite_atari, which needs the "
            "extra: pip install 'tfrl[atari]'."
        )
    if name.startswith("dm_control/"):
        task = re.sub(r"-v\d+$", "", name)
        task = "dm_control/cartpole-balance, for example" if task == name else task
        return f"a task of dm_control has no version; write {task}."
    near = difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.6)
    told = "gymnasium.pprint_registry() lists those that there are."
    if near:
        told = "did you mean " + " or ".join(lower[key] for key in near) + "?"
    elif re.fullmatch(r"[A-Z][A-Za-z]+-v[04]", name):
        # Gym's names of Atari games, which ale-py registers when it is imported.
        told = (
            "if it is an Atari game, load it by tfrl.environments.suite_atari, or as "
            f"'ale_py:{name}', with the extra: pip install 'tfrl[atari]'."
        )
    return f"{told} To import a module that registers it, write 'module:{name}'."


def _renders_pictures(spec: registration.EnvSpec) -> bool:
    """Whether the environment can be made with `render_mode="rgb_array"`."""
    creator: Any = spec.entry_point
    if isinstance(creator, str):
        creator = registration.load_env_creator(creator)
    metadata = getattr(creator, "metadata", None)
    if isinstance(metadata, Mapping):
        return "rgb_array" in (metadata.get("render_modes") or ())
    return (
        creator is not None and "render_mode" in inspect.signature(creator).parameters
    )


@contextlib.contextmanager
def model_warnings_omitted(spec: registration.EnvSpec) -> Iterator[None]:
    """Omits, within this context, MuJoCo's warnings that a model's words will go.

    MuJoCo 3.3 and later print one for each HalfCheetah that is made, and write it to
    MUJOCO_LOG.TXT in the current folder; only Gymnasium can change its models. Other
    warnings of MuJoCo become Python's. A handler of the user's own stays.

    Args:
      spec: The specification of the environment that is made.
    """
    if not str(spec.entry_point).startswith("gymnasium.envs.mujoco"):
        yield
        return
    import mujoco

    if mujoco.get_mju_user_warning() is not None:
        yield
        return
    mujoco.set_mju_user_warning(_warn_of_model)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(None)


def _warn_of_model(text: str) -> None:
    if "deprecated" not in text:
        log.warn(f"MuJoCo: {text}")
