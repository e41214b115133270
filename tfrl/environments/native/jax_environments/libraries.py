"""The libraries of environments in JAX: a row for each.

The functions that make their environments are in `adapters`, which needs NumPy: a row
is also read where a command only looks for a name.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tfrl.environments import extras
from tfrl.environments.native import jax_environments

if TYPE_CHECKING:
    from tfrl.environments.native.jax_environments.adapters import Made


@dataclasses.dataclass(frozen=True)
class Library:
    """A library of environments.

    Attributes:
      prefix: The beginning of the names of its environments here, with a slash.
      module: The module to import.
      distribution: The name of its package.
      example: One of its environments, without the prefix.
      make: Takes a name without the prefix, and makes the environment.
      names: Returns the names, without the prefix.
      films: Whether it draws its states.
      has_agents: Whether its environments have several agents.
      others: What its environments are that have no name here, for errors.
    """

    prefix: str
    module: str
    distribution: str
    example: str
    make: Callable[[str], Made]
    names: Callable[[], Iterable[str]]
    films: bool = False
    has_agents: bool = False
    others: str = ""

    @property
    def extra(self) -> str:
        """The extra of tfrl that brings it."""
        return self.prefix.rstrip("/")

    def require(self) -> None:
        """Raises an ImportError that says what to install, if it is missing."""
        extras.require(
            f"environment {self.prefix}...",
            f"pip install 'tfrl[{self.extra}]'",
            self.module,
        )

    def check(self, name: str) -> None:
        """Raises a ValueError if there is no environment of a name, without prefix."""
        known = sorted(self.names())
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or known[:3]
            others = f" The others {self.others}." if self.others else ""
            raise ValueError(
                f"environment: got {self.prefix + name!r}, expected one of "
                f"{len(known)} names; did you mean "
                f"{' or '.join(self.prefix + each for each in near)}?{others}"
            )


def find(name: str) -> tuple[Library, str] | None:
    """Returns the library of an environment, and its name without the prefix."""
    for library in LIBRARIES:
        if name.startswith(library.prefix):
            return library, name.removeprefix(library.prefix)
    return None


LIBRARIES = (
    Library(
        "gymnax/",
        "gymnax",
        "gymnax",
        "Breakout-MinAtar",
        lambda name: jax_environments.adapters.make_gymnax(name),
        lambda: jax_environments.adapters.gymnax_names(),
    ),
    Library(
        "brax/",
        "brax",
        "brax",
        "ant",
        lambda name: jax_environments.adapters.make_brax(name),
        lambda: jax_environments.adapters.brax_names(),
    ),
    Library(
        "jumanji/",
        "jumanji",
        "jumanji",
        "Snake-v1",
        lambda name: jax_environments.adapters.make_jumanji(name),
        lambda: jax_environments.adapters.jumanji_names(),
    ),
    Library(
        "craftax/",
        "craftax",
        "craftax",
        "Craftax-Classic-Symbolic-v1",
        lambda name: jax_environments.adapters.make_craftax(name),
        lambda: jax_environments.adapters.craftax_names(),
        films=True,
    ),
    Library(
        "navix/",
        "navix",
        "navix",
        "Navix-DoorKey-5x5-v0",
        lambda name: jax_environments.adapters.make_navix(name),
        lambda: jax_environments.adapters.navix_names(),
        films=True,
    ),
    Library(
        "xland/",
        "xminigrid",
        "xminigrid",
        "MiniGrid-DoorKey-5x5",
        lambda name: jax_environments.adapters.make_xland(name),
        lambda: jax_environments.adapters.xland_names(),
        films=True,
        others="have no goal before one is chosen, as a parameter for native.from_jax",
    ),
    Library(
        "pgx/",
        "pgx",
        "pgx",
        "2048",
        lambda name: jax_environments.adapters.make_pgx(name),
        lambda: jax_environments.adapters.pgx_names(),
        films=True,
        others="are games of three players and more",
    ),
    Library(
        "jaxmarl/",
        "jaxmarl",
        "jaxmarl",
        "MPE_simple_spread_v3",
        lambda name: jax_environments.adapters.make_jaxmarl(name),
        lambda: jax_environments.adapters.jaxmarl_names(),
        has_agents=True,
    ),
    Library(
        "playground/",
        "mujoco_playground",
        "playground",
        "CheetahRun",
        lambda name: jax_environments.adapters.make_playground(name),
        lambda: jax_environments.adapters.playground_names(),
        films=True,
    ),
)
