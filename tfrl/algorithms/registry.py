"""The algorithms by their names, and their settings for an environment."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tfrl.algorithms import presets
from tfrl.environments import suites

if TYPE_CHECKING:  # `tfrl cache` does not wait for NumPy.
    from tfrl.algorithms.builder import Builder

# The module and the class of each algorithm, by the algorithm's name.
CLASSES = {
    "dqn": ("dqn", "DQN"),
    "ddqn": ("dqn", "DDQN"),
    "c51": ("dqn", "C51"),
    "qr_dqn": ("dqn", "QRDQN"),
    "iqn": ("dqn", "IQN"),
    "rainbow": ("dqn", "Rainbow"),
    "r2d2": ("dqn", "R2D2"),
    "reinforce": ("reinforce", "REINFORCE"),
    "ppo": ("ppo", "PPO"),
    "a2c": ("ppo", "A2C"),
    "pqn": ("pqn", "PQN"),
    "impala": ("impala", "IMPALA"),
    "lin_ucb": ("bandits", "LinUCB"),
    "lin_ts": ("bandits", "LinTS"),
    "neural_epsilon_greedy": ("bandits", "NeuralEpsilonGreedy"),
    "neural_lin_ucb": ("bandits", "NeuralLinUCB"),
    "ddpg": ("td3", "DDPG"),
    "d4pg": ("td3", "D4PG"),
    "td3": ("td3", "TD3"),
    "sac": ("sac", "SAC"),
    "redq": ("sac", "REDQ"),
    "droq": ("sac", "DroQ"),
    "tqc": ("sac", "TQC"),
    "crossq": ("sac", "CrossQ"),
    "discrete_sac": ("sac", "DiscreteSAC"),
    "qt_opt": ("qt_opt", "QtOpt"),
    "mrq": ("mrq", "MRQ"),
    "dreamer": ("dreamer", "Dreamer"),
    "mpo": ("mpo", "MPO"),
    "dmpo": ("mpo", "DMPO"),
    "iql": ("offline", "IQL"),
    "cql": ("offline", "CQL"),
    "td3_bc": ("offline", "TD3BC"),
    "rebrac": ("offline", "ReBRAC"),
    "edac": ("offline", "EDAC"),
    "bc": ("offline", "BC"),
}


def find(name: str) -> type[Builder]:
    """Returns the algorithm with a name, such as "qr_dqn".

    Raises:
      ValueError: There is none.
    """
    if name not in CLASSES:
        raise ValueError(
            f"algorithm: got {name!r}, expected one of {', '.join(map(repr, CLASSES))}."
        )
    module, class_name = CLASSES[name]
    found: type[Builder] = getattr(
        importlib.import_module(f"tfrl.algorithms.{module}"), class_name
    )
    return found


def name_of(fields: Mapping[str, Any]) -> str:
    """Returns the algorithm that fields of a config.json name; empty for none."""
    found = fields.get("algorithm") or ""
    return found if isinstance(found, str) else ""


def find_preset(
    algorithm: type[Builder],
    environment: str,
    find_kind: Callable[[], str | None] | None = None,
) -> presets.Preset | None:
    """Returns the preset that an algorithm uses for an environment, or None.

    If the algorithm has no preset, the preset of `algorithm.relative` is used. If there
    is none for the environment or its family, a preset for its kind is used.

    Args:
      algorithm: The algorithm.
      environment: The environment's name; empty if it has none.
      find_kind: Returns the environment's kind; None for `suites.kind_of` of its name.
    """
    names = [name for name in (algorithm.name, algorithm.relative) if name]
    for name in names:
        found = presets.find(name, environment)
        if found is not None:
            return found
    for name in names:
        rows = presets.of_kinds(name)
        if rows:
            kind = find_kind() if find_kind else suites.kind_of(environment)
            return rows.get(kind or "")
    return None


def preset_for(
    algorithm: type[Builder],
    environment: str,
    name: str,
    find_kind: Callable[[], str | None] | None = None,
) -> presets.Preset | None:
    """Returns the preset with a name, or the one for an environment; perhaps None.

    Args:
      algorithm: The algorithm.
      environment: The environment's name; empty if it has none.
      name: The preset's name; empty for the environment's preset.
      find_kind: See `find_preset`.

    Raises:
      ValueError: There is no such preset, or it is for another algorithm.
    """
    if not name:
        return find_preset(algorithm, environment, find_kind)
    preset = presets.named(name, algorithm.name, algorithm.relative)
    if preset.algorithm not in (algorithm.name, algorithm.relative):
        raise ValueError(
            f"preset: got {name!r}, settings of {preset.algorithm!r}, expected a "
            f"preset of {algorithm.name!r}; `tfrl list settings {algorithm.name}` "
            "lists them."
        )
    return preset


def settings_of(algorithm: type[Builder], preset: presets.Preset) -> dict[str, Any]:
    """Returns the settings that an algorithm takes from a preset.

    From a preset of its relative it takes those that it has, except for settings that
    its own classes declare.
    """
    if preset.algorithm == algorithm.name:
        return dict(preset.settings)
    others = find(preset.algorithm).__mro__
    own = [each for each in algorithm.__mro__ if each not in others]
    declared = {name for each in own for name in inspect.get_annotations(each)}
    taken = algorithm.run_fields().keys() - declared
    return {name: x for name, x in preset.settings.items() if name in taken}
