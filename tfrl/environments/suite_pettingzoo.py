"""Loads environments of several agents by their names in PettingZoo and MPE2.

Terry et al., "PettingZoo: Gym for multi-agent reinforcement learning" (2021,
arXiv:2009.14471). Needs the extra: `pip install 'tfrl[pettingzoo]'`, which brings the
particle environments of MPE2; PettingZoo's other families have extras of their own,
such as `pip install 'pettingzoo[sisl]'`.

A name with "pettingzoo/" before it is the name of an environment, as in
`tfrl.PPO("pettingzoo/simple_spread_v3")`; `load` also takes options of the environment.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tfrl import environments
from tfrl.environments import extras
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.environments.agents_py_environment import AgentsPyEnvironment

PREFIX = "pettingzoo/"  # Of the names of environments.
_EXTRA = "pip install 'tfrl[pettingzoo]'"
_FAMILIES = (
    "mpe2",
    "pettingzoo.butterfly",
    "pettingzoo.classic",
    "pettingzoo.sisl",
    "pettingzoo.atari",
)
_VERSIONED = re.compile(r"\w+_v\d+")


def is_available() -> bool:
    """Whether the extra is installed."""
    return extras.is_installed("pettingzoo", "mpe2")


def names() -> list[str]:
    """Returns the names of environments; none if the extra is not installed."""
    if not is_available():
        return []
    return [PREFIX + name for name in _modules()]


def check(environment_name: str) -> None:
    """Checks that there is an environment of this name; see `load`."""
    _module_of(environment_name)


def make(environment_name: str, **options: Any) -> Any:
    """Returns PettingZoo's parallel environment; for the arguments see `load`."""
    module = importlib.import_module(_module_of(environment_name))
    is_parallel = hasattr(module, "parallel_env")
    return as_parallel((module.parallel_env if is_parallel else module.env)(**options))


def as_parallel(environment: Any) -> Any:
    """Returns an environment of PettingZoo in which all agents act at once.

    Environments in which agents take turns become parallel by PettingZoo's own
    converters. In games of strict turns the actions of those who wait are ignored.

    Args:
      environment: A `ParallelEnv`, or an `AECEnv`.
    """
    import pettingzoo
    from pettingzoo.utils import conversions

    if isinstance(environment, pettingzoo.ParallelEnv):
        return environment
    if environment.metadata.get("is_parallelizable"):
        return conversions.aec_to_parallel(environment)
    return conversions.turn_based_aec_to_parallel(environment)


def num_agents(environment_name: str) -> int:
    """Returns the number of agents in an environment; see `load`."""
    made = make(environment_name)
    try:
        return len(made.possible_agents)
    finally:
        made.close()


def load(
    environment_name: str,
    num_envs: int = 1,
    discount: float = 1.0,
    *,
    agent_numbers: bool = False,
    shared_state: bool = False,
    **options: Any,
) -> AgentsPyEnvironment:
    """Makes some copies of an environment, whose agents are the members of a batch.

    Args:
      environment_name: A name, such as "simple_spread_v3", with or without
        "pettingzoo/".
      num_envs: The number of copies.
      discount: The discount of every step but the first and a termination.
      agent_numbers: See `AgentsPyEnvironment`.
      shared_state: See `AgentsPyEnvironment`.
      **options: Options of the environment, such as `continuous_actions=True`.

    Raises:
      ImportError: The extra, or a package that the environment needs, is not installed.
      ValueError: There is no such environment, or its spaces cannot be joined.
    """
    number_checks.check_sizes(num_envs=num_envs)
    options = {"render_mode": "rgb_array", **options}
    envs = [make(environment_name, **options) for _ in range(num_envs)]
    return environments.AgentsPyEnvironment(
        envs, discount, agent_numbers=agent_numbers, shared_state=shared_state
    )


def load_batch(
    environment_name: str, num_envs: int, *, is_training: bool, **options: Any
) -> AgentsPyEnvironment:
    """Makes a batch of a number of agents; see `load`.

    Args:
      environment_name: The name, such as "pettingzoo/simple_spread_v3".
      num_envs: The number of members, which are agents. In training it is a multiple of
        an environment's agents; elsewhere the next multiple is taken.
      is_training: Whether an agent trains in it.
      **options: See `AgentsPyEnvironment`.

    Raises:
      ValueError: See `load`; or the number of members is no multiple.
    """
    make_one = functools.partial(make, environment_name, render_mode="rgb_array")
    return batch_of(
        make_one(),
        make_one,
        num_envs,
        environment_name,
        is_training=is_training,
        **options,
    )


def batch_of(
    first: Any,
    make_one: Callable[[], Any],
    num_envs: int,
    name: str,
    *,
    is_training: bool,
    **options: Any,
) -> AgentsPyEnvironment:
    """Makes a batch of an environment and of as many others as its size needs.

    Args:
      first: PettingZoo's environment.
      make_one: Makes another one.
      num_envs: The number of members; see `load_batch`.
      name: The environment's name, for the error.
      is_training: Whether an agent trains in it.
      **options: See `AgentsPyEnvironment`.

    Raises:
      ValueError: See `load_batch`.
    """
    first = as_parallel(first)
    agents = len(first.possible_agents)
    copies = -(-num_envs // agents)
    if is_training and num_envs % agents:
        raise ValueError(
            f"num_envs: got {num_envs} for {name or 'an environment'}, which has "
            f"{agents} agents, expected a multiple of {agents}, since each agent is a "
            f"member of the batch; set {copies * agents}, for example."
        )
    others = (as_parallel(make_one()) for _ in range(copies - 1))
    return environments.AgentsPyEnvironment([first, *others], **options)


def _modules() -> dict[str, str]:
    """Returns the modules of environments by their names, without importing them."""
    found: dict[str, str] = {}
    for family in _FAMILIES:
        spec: Any = importlib.util.find_spec(family)
        for module in pkgutil.iter_modules(spec.submodule_search_locations):
            if _VERSIONED.fullmatch(module.name):
                found.setdefault(module.name, f"{family}.{module.name}")
    return dict(sorted(found.items()))


def _module_of(environment_name: str) -> str:
    """Returns the module of an environment."""
    extras.require("suite_pettingzoo", _EXTRA, "pettingzoo", "mpe2")
    modules = _modules()
    name = environment_name.removeprefix(PREFIX)
    if name in modules:
        return modules[name]
    near = difflib.get_close_matches(name, modules)
    prefix = PREFIX if name != environment_name else ""
    instead = " or ".join(repr(prefix + each) for each in near)
    raise ValueError(
        f"environment_name: got {environment_name!r}, expected one of PettingZoo's or "
        f"MPE2's environments; "
        + (f"did you mean {instead}?" if near else "tfrl list environments pettingzoo/")
    )
