"""Presets: settings made for environments, in the JSON files of this folder.

A preset has a `name`, an `algorithm`, an `environment`, the `source` of its settings,
and the `settings` that differ from the algorithm's defaults. Its `family` is a pattern
of other environments that it is for. A `variant` is used only if it is named. A preset
with `kinds` is also for all environments of these kinds that have no other preset. One
with `actors` is for runs with actors in processes. The `origin` of one whose source is
published holds the values that were read there, so that they can be compared.

>>> from tfrl.algorithms import presets
>>> presets.find("ppo", "Hopper-v5").name
'ppo_mujoco'
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Source:
    """Where values were read.

    Attributes:
      name: The repository, or the paper.
      file: The file of the repository, or the section of the paper.
      values: The values.
      commit: The commit; empty for a paper.
      notes: What else there is to know about some of the values, by their names.
    """

    name: str
    file: str
    values: Mapping[str, Any]
    commit: str = ""
    notes: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Origin:
    """What the sources of a preset say.

    Attributes:
      names: Whose names the values have, such as "Stable-Baselines3".
      sources: The sources; values of later ones replace those of earlier ones.
      differs: The settings of the preset that differ from the sources, with reasons.
      others: Differences that no setting expresses.
    """

    names: str
    sources: Sequence[Source]
    differs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    others: Sequence[str] = ()

    @property
    def values(self) -> dict[str, Any]:
        """The values of all sources together."""
        return {k: x for source in self.sources for k, x in source.values.items()}


@dataclasses.dataclass(frozen=True)
class Preset:
    """Settings of an algorithm for an environment.

    Attributes:
      name: The preset's name.
      algorithm: The algorithm's name.
      environment: The environment's name.
      source: Where the settings are from.
      settings: The settings that differ from the algorithm's defaults, by name.
      family: A pattern of further environments that the settings are for.
      variant: Whether another preset is the usual one for the environment.
      kinds: Kinds of environments. The preset is also for environments of these kinds
        that have no other preset; see `conversion.kind_of`.
      actors: Settings of `experiments.actors.ActorSettings`; None for runs in one
        process.
      note: What else there is to know about the settings.
      origin: What its sources say; None for settings that were chosen here.
    """

    name: str
    algorithm: str
    environment: str
    source: str
    settings: Mapping[str, Any]
    family: str | None = None
    variant: bool = False
    kinds: Sequence[str] = ()
    actors: Mapping[str, Any] | None = None
    note: str = ""
    origin: Origin | None = None

    def serves(self, environment: str) -> bool:
        """Whether the preset is for an environment, or for its family."""
        family = self.family or re.escape(self.environment)
        return environment == self.environment or bool(
            re.fullmatch(family, environment)
        )

    def text(self, environment: str) -> str:
        """Returns a line that describes the preset for an environment."""
        by_kind = self.kinds and not self.serves(environment)
        scope = f", for any environment of {self.kinds[0]}" if by_kind else ""
        return f"settings {self.name!r}{scope} ({self.source})"


@functools.cache
def every() -> tuple[Preset, ...]:
    """Returns all presets."""
    files = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(pathlib.Path(__file__).parent.glob("*.json"))
    }
    shared = files.pop("sources")
    return tuple(
        Preset(**{**row, "origin": _origin(row.get("origin"), shared)})
        for rows in files.values()
        for row in rows
    )


def _origin(row: dict[str, Any] | None, shared: Mapping[str, Any]) -> Origin | None:
    """Returns the origin of a row; a source is one of sources.json, or `like` one."""
    if row is None:
        return None
    fields = [
        shared[x] if isinstance(x, str) else {**shared.get(x.get("like"), {}), **x}
        for x in row["sources"]
    ]
    sources = [
        Source(**{name: x for name, x in each.items() if name != "like"})
        for each in fields
    ]
    return Origin(**{**row, "sources": sources})


def named(name: str, *algorithms: str | None) -> Preset:
    """Returns the preset with a name.

    Args:
      name: The name.
      *algorithms: The algorithms whose presets the error lists; all by default.

    Raises:
      ValueError: There is none.
    """
    for preset in every():
        if preset.name == name:
            return preset
    names = [x.name for x in every() if not algorithms or x.algorithm in algorithms]
    near = difflib.get_close_matches(name, names, n=len(names) or 1, cutoff=0.0)
    raise ValueError(
        f"preset: got {name!r}, expected "
        + (f"one of {', '.join(near)}." if near else "none, since there is none here.")
    )


def find(algorithm: str, environment: str) -> Preset | None:
    """Returns an algorithm's preset for an environment or its family, or None.

    Args:
      algorithm: The algorithm's name.
      environment: The environment's name.
    """
    rows = [
        each
        for each in every()
        if each.algorithm == algorithm and not (each.variant or each.actors)
    ]
    for preset in rows:
        if preset.environment == environment:
            return preset
    return next((each for each in rows if each.serves(environment)), None)


def of_kinds(algorithm: str) -> dict[str, Preset]:
    """Returns the algorithm's presets for kinds of environments, by kind."""
    rows = [each for each in every() if each.algorithm == algorithm]
    return {kind: each for each in rows for kind in each.kinds}


def find_with_actors(algorithm: str, environment: str) -> Preset | None:
    """Returns an algorithm's preset for runs with actors in an environment, or None."""
    rows = [x for x in every() if x.actors and x.algorithm == algorithm]
    return next((each for each in rows if each.environment == environment), None)
