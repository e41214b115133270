"""The algorithms by their names, and their settings for an environment."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import ml_collections

from tfrl.algorithms import presets
from tfrl.environments import suites

if TYPE_CHECKING:
    from tfrl.algorithms.algorithm import Algorithm

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
    "ddpg": ("td3", "DDPG"),
    "d4pg": ("td3", "D4PG"),
    "td3": ("td3", "TD3"),
    "sac": ("sac", "SAC"),
    "redq": ("sac", "REDQ"),
    "tqc": ("sac", "TQC"),
    "discrete_sac": ("sac", "DiscreteSAC"),
    "mpo": ("mpo", "MPO"),
    "dmpo": ("mpo", "DMPO"),
    "iql": ("offline", "IQL"),
    "cql": ("offline", "CQL"),
    "bc": ("offline", "BC"),
}


def find(name: str) -> type[Algorithm]:
    """Returns the algorithm with a name, such as "qr_dqn".

    Raises:
      ValueError: There is none.
    """
    if name not in CLASSES:
        raise ValueError(
            f"agent: got {name!r}, expected one of {', '.join(map(repr, CLASSES))}."
        )
    module, class_name = CLASSES[name]
    found: type[Algorithm] = getattr(
        importlib.import_module(f"tfrl.algorithms.{module}"), class_name
    )
    return found


def name_of(config: Mapping[str, Any]) -> str:
    """Returns the name of a configuration's algorithm; empty if it has none."""
    found = config.get("agent") or config.get("algorithm") or ""
    return found if isinstance(found, str) else ""


def find_preset(
    algorithm: type[Algorithm],
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


def config_for(name: str, environment: str = "") -> ml_collections.ConfigDict:
    """Returns the settings of an algorithm for an environment; see `config_of`.

    Args:
      name: The algorithm's name, with a `+` after it for the settings of its class,
        such as `tfrl.DQN`.
      environment: The environment's name; empty for the algorithm's usual one.
    """
    name, plus = name.removesuffix("+"), name.endswith("+")
    algorithm = find(name)
    environment = environment or algorithm.environment_name
    preset = find_preset(algorithm, environment)
    values = {} if preset is None else preset.settings
    overrides = algorithm.overrides if plus else {}
    return make_config(name, environment, {**values, **overrides})


def config_of(preset_name: str) -> ml_collections.ConfigDict:
    """Returns the settings of a preset as fields; see `config_of_row`.

    Args:
      preset_name: The name of the preset.
    """
    return config_of_row(presets.named(preset_name))


def config_of_row(preset: presets.Preset) -> ml_collections.ConfigDict:
    """Returns a preset's settings as fields that the scripts' flags can override."""
    return make_config(preset.algorithm, preset.environment, preset.settings)


def make_config(
    name: str, environment: str, values: Mapping[str, Any]
) -> ml_collections.ConfigDict:
    """Returns an algorithm's settings as fields that the scripts' flags can override.

    Args:
      name: The algorithm's name.
      environment: The environment's name.
      values: The settings that are not the defaults.
    """
    settings = find(name).Settings.of(values)
    fields = {"env": environment, "agent": name, **settings.to_dict()}
    return ml_collections.ConfigDict(fields)


def algorithm_of(
    config: Mapping[str, Any], environment: Any = None, **arguments: Any
) -> Algorithm:
    """Returns the algorithm of a configuration.

    Args:
      config: Its fields; `agent` is the algorithm's name, and `env` the environment's.
      environment: The environment to train in; None makes the environment `env`.
      **arguments: Further arguments of the algorithm.

    Raises:
      ValueError: There is no such algorithm, or no environment.
    """
    kind = find(name_of(config))
    name = config.get("env", "")
    if environment is None and not name:
        raise ValueError(
            "environment: got none, and the run trained in one without a name; give "
            "the environment."
        )
    made = kind(
        name if environment is None else environment,
        settings=kind.Settings.of(config),
        **{"environment_name": name, **arguments},
    )
    made.num_iterations = config.get("schedule_iterations", made.num_iterations)
    return made
