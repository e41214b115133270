"""The suites of environments: a row for each, by which a name is found and made.

Every function that takes the name of an environment goes through these rows. A user
adds one, and its names work wherever a name does, as in `tfrl.PPO("mysuite/task")`:

>>> from tfrl.environments import suites
>>> is_own = lambda name: name.startswith("mysuite/")
>>> suites.add(suites.Suite(matches=is_own, load=make))  # doctest: +SKIP

"mysuite:mysuite/task" first imports a module that adds it, as for Gymnasium's names,
and an installed package names its module in the group "tfrl.suites" of entry points:
both work on the command line and in child processes, too. TensorFlow is not imported
before an environment is made, unless a suite itself needs it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.metadata
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tfrl import environments
from tfrl.environments.boundary import conversion
from tfrl.environments.native.jax_environments import libraries
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.environments.py_environment import PyEnvironment

# Packages of Gymnasium whose environments are made in milliseconds.
_MADE_AT_ONCE = ("gymnasium.envs.classic_control", "gymnasium.envs.toy_text")
# Packages whose environments have names here; importing them registers environments.
_KNOWN_MODULES = ("ale_py", "gymnasium", "minigrid", "pybullet_envs_gymnasium")
_BSUITE = "bsuite/"
# Environments of Gymnasium without their velocities, by the names of RL Zoo, such as
# CartPoleNoVel-v1: the elements of an observation that are not velocities. An agent
# without memory cannot know which way the pole falls.
_POSITIONS = {
    "CartPoleNoVel": (0, 2),
    "MountainCarNoVel": (0,),
    "MountainCarContinuousNoVel": (0,),
    "PendulumNoVel": (0, 1),
}


@dataclasses.dataclass(frozen=True)
class Option:
    """What a run can choose about the environments of a suite, such as `emulator`.

    A program gives it as it gives a setting, `tfrl.DQN(environment, emulator="...")`,
    and so do flags and files.

    Attributes:
      text: The help, at most a line.
      check: Checks a value; takes the option's name, the value and, as a keyword, the
        `remedy`, as the functions of `number_checks` do.
      default: The default.
    """

    text: str
    check: Callable[..., None]
    default: Any


# Of all suites whose environments are made one by one.
_OF_SINGLE = {
    "action_repeat": Option(
        "Steps per action; for dm_control, bsuite and functions of your own.",
        functools.partial(number_checks.check_integer, minimum=1, maximum=2**31 - 1),
        1,
    )
}


def _one(_: str) -> int:
    return 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Suite:
    """A suite of environments. It needs `load`, `load_batch` or `dynamics`.

    Attributes:
      matches: Takes a name; whether the suite has an environment of this name.
      load: Takes a name and, as keywords, the options, and makes an environment of
        Gymnasium, dm_env or tfrl.
      load_batch: Takes a name, a number and, as keywords, `is_training` and the
        options, and makes so many environments that are stepped together; None takes
        several of `load`, whose actions can be repeated. In training, say, a lost life
        in an Atari game ends an episode, and rewards become their signs.
      options: What runs can choose about its environments, by name.
      dynamics: Takes a name, and returns the environment's `native.Dynamics`; None if
        it is not written in TensorFlow. All environments of a suite that has neither
        `load` nor `load_batch` are.
      members: Takes a name, and returns the number of members that belong together in a
        batch, such as the agents of an environment.
      check: Takes a name, and raises an error if there is no such environment; returns
        its action space, or None if only the environment itself knows it.
      kind: Takes a name, and returns the environment's kind, see `conversion.kind_of`,
        or None; None finds it in an environment of `load`.
      films: Whether environments show pictures, or a function of a name that says so;
        None for those whose `render_mode` is "rgb_array".
      has_time_limit: Whether all episodes are truncated, in environments in which
        `time_limits` finds no limit.
      not_for_actors: What the environments are, such as "a game", if actors in
        processes of their own do not play them.
      names: Returns the names that an unknown one may have been meant to be.
    """

    matches: Callable[[str], Any] = lambda _: None
    load: Callable[..., Any] | None = None
    load_batch: Callable[..., PyEnvironment] | None = None
    options: Mapping[str, Option] = dataclasses.field(default_factory=dict)
    dynamics: Callable[[str], Any] = lambda _: None
    members: Callable[[str], int] = _one
    check: Callable[[str], Any] = lambda _: None
    kind: Callable[[str], str | None] | None = None
    films: bool | Callable[[str], bool] | None = None
    has_time_limit: bool = False
    not_for_actors: str = ""
    names: Callable[[], Iterable[str]] = list

    @property
    def is_native(self) -> bool:
        """Whether all environments are written in TensorFlow."""
        return self.load is None and self.load_batch is None

    @property
    def every_option(self) -> dict[str, Option]:
        """The options, with those of all suites whose environments are made singly."""
        is_single = self.load is not None and self.load_batch is None
        return {**(_OF_SINGLE if is_single else {}), **self.options}


def add(suite: Suite) -> None:
    """Adds a suite. Its names go before those of the suites that there are."""
    _added.insert(0, suite)
    kind_of.cache_clear()


def find(given: Any) -> tuple[Suite, str]:
    """Returns the suite of an environment, and the environment's name in it.

    Args:
      given: The environment's name. A function that makes environments, an environment
        or `native.Dynamics` are a suite of their own.

    Raises:
      ValueError: The part of the name before a colon is no module.
    """
    if not isinstance(given, str):
        return _suite_of(given), ""
    import gymnasium

    module, _, own = given.rpartition(":")
    if module:
        environments.suite_gym.import_registrations(given, module)
        # Such as "ale_py:ALE/Pong-v5". Gymnasium's module stays: it says that the
        # environment is not one of those written in TensorFlow.
        top = module.partition(".")[0]
        given = own if top in _KNOWN_MODULES and top != "gymnasium" else given
    elif given not in gymnasium.registry:
        _import_installed()
    for suite in _added:
        if suite.matches(own):
            return suite, own
    return next(suite for suite in _SUITES if suite.matches(given)), given


def call(make: Callable[[], Any]) -> Any:
    """Calls a function that makes an environment, and returns the environment."""
    if "MUJOCO_GL" in os.environ:
        # The function may import dm_control, which then loads Mesa; see
        # `suite_dm_control`.
        import tensorflow  # noqa: F401

        environments.gymnasium.headless.prepare_mujoco()
    _check_takes_nothing(make)
    return make()


def _check_takes_nothing(make: Callable[..., Any]) -> None:
    """Raises a TypeError if a function needs arguments, as RLlib's environments do."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        return  # It is not written in Python.
    kinds = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    needed = [
        x.name for x in parameters if x.default is x.empty and x.kind not in kinds
    ]
    if needed:
        name = getattr(make, "__name__", repr(make))
        raise TypeError(
            f"environment: got {name}, which needs {', '.join(needed)}, expected a "
            f"function without arguments; write lambda: {name}(...) with the values."
        )


def check_trusted(name: str, file: Any, remedy: str) -> None:
    """Checks that an environment's name in a file imports no module of its own choice.

    A name in a program or on the command line is the user's own, and is not checked.

    Args:
      name: The name.
      file: The file that it is from, for the error.
      remedy: How to trust the file, for the error.

    Raises:
      ValueError: The part of the name before a colon is a module that is neither a
        suite's nor imported already.
    """
    module, _, _ = name.rpartition(":")
    is_known = module.partition(".")[0] in _KNOWN_MODULES
    if module and not is_known and module not in sys.modules:
        raise ValueError(
            f"{file}: its environment is {name!r}, and to make it would run the module "
            f"{module!r}; if you trust it, import it first, or {remedy}."
        )


def _suite_of(given: Any) -> Suite:
    dynamics = getattr(given, "dynamics", given)
    if isinstance(dynamics, environments.native.Dynamics):
        return Suite(dynamics=lambda _: dynamics)
    if conversion.is_environment(given):
        return Suite(load_batch=lambda *_, **__: conversion.wrap(given), films=False)
    return Suite(load=lambda _: call(given))


@functools.cache
def _import_installed() -> None:
    """Imports the modules that installed packages name, which add suites."""
    for each in importlib.metadata.entry_points(group="tfrl.suites"):
        each.load()


def find_action_space(name: str) -> Any:
    """Checks an environment's name without TensorFlow; returns its action space.

    Returns None for a space that is not known before the environment is made.

    Raises:
      ImportError: The extra that brings the environment is not installed.
      ValueError: There is no environment, game or task of this name.
    """
    suite, name = find(name)
    try:
        return suite.check(name)
    except ValueError as error:
        # Also of a user's suite, in whose code it would be a fault.
        raise ValueError(*error.args) from error


def check_actors(name: str) -> None:
    """Raises a ValueError for an environment that actors in processes do not play."""
    suite, _ = find(name)
    if suite.not_for_actors:
        raise ValueError(
            f"env: got {name!r}, {suite.not_for_actors}, which actors do not play; "
            f"train in one process: tfrl train dqn --env={name}"
        )


def options() -> dict[str, Option]:
    """Returns the options of all suites that are imported, by name."""
    found = dict(_OF_SINGLE)
    for suite in (*reversed(_SUITES), *reversed(_added)):
        found |= suite.options
    return found


def check_options(given: Any, values: Mapping[str, Any]) -> None:
    """Raises a ValueError if an environment has no such option, unless as by default.

    Args:
      given: See `find`.
      values: The values of options, by name.
    """
    known = find(given)[0].every_option
    for name, value in values.items():
        option = options()[name]
        if name not in known and value != option.default:
            what = given if isinstance(given, str) else type(given).__name__
            raise ValueError(
                f"{name}: got {value!r} for {what!r}, expected {option.default!r}, or "
                f"an environment that has this option. {option.text}"
            )


@functools.cache
def kind_of(name: str) -> str | None:
    """Returns the kind of an environment, see `conversion.kind_of`, or None."""
    with contextlib.suppress(Exception):  # The run says what is wrong.
        suite, name = find(name)
        if suite.kind is not None:
            return suite.kind(name)
        if suite.load is not None:
            usual = {option: x.default for option, x in suite.options.items()}
            with contextlib.closing(suite.load(name, **usual)) as made:
                return conversion.kind_of(made)
    return None


def members_of(name: str) -> int:
    """Returns how many members of a batch belong together, such as agents, or 1."""
    with contextlib.suppress(Exception):  # The run says what is wrong.
        if ":" in name:
            suite, name = find(name)
            return suite.members(name)
        # Without `find`, which imports Gymnasium: help does not wait for it.
        for suite in (*_added, *_SUITES):
            if suite.members is not _one and suite.matches(name):
                return suite.members(name)
    return 1


def find_dynamics(environment: Any, num_action_bins: int = 0) -> Any:
    """Returns the dynamics of an environment in TensorFlow; None for another one.

    Args:
      environment: The name of an environment, `Dynamics`, a `NativeEnvironment`, or
        anything else.
      num_action_bins: The values of a continuous action; 0 leaves it.
    """
    suite, name = find(environment)
    dynamics = suite.dynamics(name)
    if dynamics is None or not num_action_bins:
        return dynamics
    return environments.native.discretize_actions(dynamics, num_action_bins)


def load(
    given: Any, num_envs: int, *, is_training: bool = False, **options: Any
) -> PyEnvironment:
    """Returns an environment in Python, or makes it, or makes several.

    Args:
      given: The name of an environment, a function that makes one, or an environment.
      num_envs: The number of environments, unless `given` is an environment.
      is_training: Whether an agent trains in it; see `Suite.load_batch`.
      **options: The options of the suite that are not at their defaults.
    """
    suite, name = find(given)
    defaults = {option: x.default for option, x in suite.every_option.items()}
    values = {**defaults, **{k: options[k] for k in options.keys() & defaults.keys()}}
    if suite.load_batch is not None:
        return suite.load_batch(name, num_envs, is_training=is_training, **values)
    assert suite.load is not None
    own = {option: values[option] for option in suite.options}
    make = functools.partial(suite.load, name, **own)
    first = make()
    if conversion.has_agents(first):
        return environments.suite_pettingzoo.batch_of(
            first, make, num_envs, name, is_training=is_training
        )
    others = (make() for _ in range(num_envs - 1))
    members = [conversion.wrap(each) for each in (first, *others)]
    if values["action_repeat"] > 1:
        repeat = environments.wrappers.ActionRepeat
        members = [repeat(member, values["action_repeat"]) for member in members]
    if num_envs == 1:
        return members[0]
    return environments.BatchedPyEnvironment(members, multithreading="fastest")


def _load_games(
    name: str, num_envs: int, *, is_training: bool, emulator: str
) -> PyEnvironment:
    return environments.suite_atari.load_batch(
        name,
        num_envs,
        noop_max=30,
        fire_on_reset=True,
        terminal_on_life_loss=is_training,
        clip_rewards=is_training,
        emulator=emulator,
    )


def _find_spec(name: str) -> Any:
    added = (known for suite in _added for known in suite.names())
    return environments.suite_gym.find_spec(name, added)


def _make_bare(name: str) -> Any:
    """Makes an environment of Gymnasium to look at, without TensorFlow."""
    import gymnasium

    from tfrl.environments import suite_gym

    spec = _find_spec(name)
    with suite_gym.model_warnings_omitted(spec):
        return gymnasium.make(spec, disable_env_checker=True)


def _check_registered(name: str) -> Any:
    entry_point = str(_find_spec(name).entry_point)
    is_quick = entry_point.startswith(_MADE_AT_ONCE)
    return _make_bare(name).action_space if is_quick else None


def _load_registered(
    name: str, num_envs: int, *, wrappers: Any = (), **_: Any
) -> PyEnvironment:
    from tfrl.environments.gymnasium import masks

    # What is made as a whole has no members to wrap.
    if _find_spec(name).vector_entry_point is None:
        wrappers = [*wrappers, masks.with_mask]
    if num_envs == 1:
        return environments.suite_gym.load(name, gym_env_wrappers=wrappers)
    return environments.gymnasium.vector_py_environment.load(
        name, num_envs, gym_env_wrappers=wrappers
    )


def _load_grids(
    name: str, num_envs: int, *, grid_observations: str, **_: Any
) -> PyEnvironment:
    _find_spec(name)  # Raises the error for a missing extra.
    import gymnasium
    import numpy as np
    from minigrid import wrappers

    # Integers have no normalizer.
    as_floats = functools.partial(gymnasium.wrappers.DtypeObservation, dtype=np.float32)
    chosen = {
        "flat": [wrappers.FlatObsWrapper, as_floats],
        "image": [wrappers.ImgObsWrapper, as_floats],
        "rgb": [wrappers.RGBImgObsWrapper, wrappers.ImgObsWrapper],
    }
    return _load_registered(name, num_envs, wrappers=chosen[grid_observations])


def _load_positions(
    name: str, num_envs: int, *, critics_see_velocities: bool, **_: Any
) -> PyEnvironment:
    environment = _load_registered(name.replace("NoVel", ""), num_envs)
    return environments.wrappers.ObservationFilterWrapper(
        environment,
        _POSITIONS[name.partition("-")[0]],
        for_critics=critics_see_velocities,
    )


def _native_dynamics(name: str) -> Any:
    native = environments.native
    return native.load(name).dynamics if name in native.names() else None


def _jax_suite(library: libraries.Library) -> Suite:
    """Returns the suite of a library of environments in JAX."""

    def jax() -> Any:
        return environments.native.jax_environments.loading

    return Suite(
        matches=lambda name: name.startswith(library.prefix),
        dynamics=lambda name: jax().load(name),
        check=lambda name: jax().check(name),
        kind=lambda name: conversion.kind_of(jax().load(name)),
        films=library.films,
        members=(lambda name: jax().load(name).members) if library.has_agents else _one,
        names=lambda: jax().names(library),
    )


def _one_of(*words: Any) -> Callable[..., None]:
    return functools.partial(number_checks.check_choice, choices=words)


# The suites that users have added, the latest first.
_added: list[Suite] = []
# The last one has every name.
_SUITES = (
    Suite(
        # As `bit_flipping.is_task`, which needs TensorFlow.
        matches=re.compile(r"BitFlipping(ToOnes)?[1-9]\d*-v0").fullmatch,
        dynamics=lambda name: environments.native.load(name).dynamics,
        films=True,
    ),
    Suite(
        matches=lambda name: environments.suite_atari.is_game(name),
        load_batch=_load_games,
        options={
            "emulator": Option(
                "Several Atari games: ale-py on threads, or gymnasium in processes.",
                _one_of("ale-py", "gymnasium"),
                "ale-py",
            )
        },
        check=lambda name: environments.suite_atari.check_game(name),
        films=True,
        has_time_limit=True,
        not_for_actors="an Atari game",
    ),
    Suite(
        matches=lambda name: environments.suite_dm_control.is_task(name),
        load=lambda name: environments.suite_dm_control.load_task(name),
        check=lambda name: environments.suite_dm_control.check_task(name),
        kind=lambda _: None,  # A task is of no kind, and takes seconds to make.
        films=False,
    ),
    Suite(
        matches=lambda name: name.startswith(_BSUITE),
        load=lambda name: environments.suite_bsuite.load(
            name.removeprefix(_BSUITE), record=False
        ),
        check=lambda name: environments.suite_bsuite.check_id(
            name.removeprefix(_BSUITE)
        ),
        films=False,
    ),
    Suite(
        matches=lambda name: name.startswith(environments.suite_gym.GRIDS),
        load_batch=_load_grids,
        # MiniGrid's observations are an image of the cells around the agent, a
        # direction and a text. "flat" joins the image with the one-hot letters of the
        # text, as RL Zoo's settings assume, `[2835]` by default; "image" is the image
        # alone, `[7, 7, 3]`; "rgb" is the whole grid in colours, with 8 pixels for a
        # cell, such as `[64, 64, 3]`. No network here reads texts.
        options={
            "grid_observations": Option(
                "MiniGrid's observations: flat, image without the text, or rgb.",
                _one_of("flat", "image", "rgb"),
                "flat",
            )
        },
        check=_check_registered,
        has_time_limit=True,  # Their classes have limits, and their specs do not.
    ),
    *map(_jax_suite, libraries.LIBRARIES),
    Suite(
        matches=lambda name: name.startswith(environments.suite_envpool.PREFIX),
        load_batch=lambda *args, **kwargs: environments.suite_envpool.load_batch(
            *args, **kwargs
        ),
        check=lambda name: (
            environments.suite_envpool.find_spaces(name).single_action_space
        ),
        kind=lambda name: conversion.kind_of(
            environments.suite_envpool.find_spaces(name)
        ),
        films=lambda name: environments.suite_envpool.draws(name),
        names=lambda: environments.suite_envpool.names(),
    ),
    Suite(
        matches=lambda name: name.startswith(environments.suite_pettingzoo.PREFIX),
        load_batch=lambda *args, **kwargs: environments.suite_pettingzoo.load_batch(
            *args, **kwargs
        ),
        options={
            "agent_numbers": Option(
                "Whether PettingZoo's agents see their own numbers.",
                _one_of(False, True),
                False,
            ),
            "shared_state": Option(
                "Whether critics see the state of PettingZoo's environments.",
                _one_of(False, True),
                False,
            ),
        },
        members=lambda name: environments.suite_pettingzoo.num_agents(name),
        check=lambda name: environments.suite_pettingzoo.check(name),
        kind=lambda _: None,
        films=True,
        names=lambda: environments.suite_pettingzoo.names(),
    ),
    Suite(
        matches=lambda name: name.partition("-")[0] in _POSITIONS,
        load_batch=_load_positions,
        options={
            "critics_see_velocities": Option(
                "Whether critics see what NoVel's environments hide.",
                _one_of(False, True),
                False,
            )
        },
        check=lambda name: _check_registered(name.replace("NoVel", "")),
    ),
    Suite(
        matches=lambda _: True,
        load=_make_bare,
        load_batch=_load_registered,
        dynamics=_native_dynamics,
        check=_check_registered,
    ),
)
