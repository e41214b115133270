"""Lists algorithms, presets of settings for environments, and environments.

tfrl list                    algorithms, and the actions they choose
tfrl list settings           presets: settings for environments
tfrl list settings ppo       presets of an algorithm
tfrl list environments       environments of the installed extras
tfrl list environments cart  those whose names have these letters
tfrl list environments pgx/  those of EnvPool, PettingZoo, or a library in JAX
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tfrl.algorithms import presets, registry
from tfrl.command import errors, parsing, program

_ACTS_ON = {
    "any": "any actions",
    "continuous": "bounded continuous actions",
    "vector": "bounded continuous actions",
    "discrete": "discrete actions",
    "discrete or continuous": "discrete or bounded continuous actions",
    "discrete or vector": "discrete or bounded continuous actions",
}
# The extras without those of the libraries in JAX, and environments that they add.
_EXTRAS = {
    "atari": ("ale_py", "ALE/Pong-v5"),
    "box2d": ("Box2D", "LunarLander-v3"),
    "dm-control": ("dm_control", "dm_control/cartpole-balance"),
    "envpool": ("envpool", "envpool/HalfCheetah-v5"),
    "minigrid": ("minigrid", "MiniGrid-DoorKey-5x5-v0"),
    "mujoco": ("mujoco", "HalfCheetah-v5"),
    "pettingzoo": ("mpe2", "pettingzoo/simple_spread_v3"),
    "robotics": ("gymnasium_robotics", "FetchReach-v4"),
}


def main(words: Sequence[str]) -> None:
    """Prints the list that some words name."""
    program.start(parsing.new(), words, _run, __doc__, takes_words=True)


def _run(words: Sequence[str]) -> None:
    what, letters = [*words, "", ""][:2]
    kinds = {
        "algorithms": _algorithms,
        "settings": _settings,
        "environments": _environments,
    }
    if what and what not in kinds:
        errors.refuse("list", what, kinds, "tfrl list --help says more")
    for line in kinds[what or "algorithms"](letters):
        print(line)


def _algorithms(letters: str) -> list[str]:
    found = []
    for name, (_, class_name) in registry.CLASSES.items():
        if letters in name:
            kind = registry.find(name)
            found.append((name, f"tfrl.{class_name}", _ACTS_ON[kind.actions]))
    return _table(found)


def by_kind() -> str:
    """Returns a line for each algorithm, grouped by its actions or its data."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, (module, _) in registry.CLASSES.items():
        kind = registry.find(name)
        group = (
            "Bandits" if module == "bandits" else _ACTS_ON[kind.actions].capitalize()
        )
        group = "From recorded data" if kind.is_offline else group
        [text, *_] = (kind.__doc__ or "").splitlines()
        text = re.sub(r" \([^()]*\)\.$|\.$", "", text)  # Without its source.
        groups.setdefault(group, []).append((f"  {name}", text))
    parts = [f"\n{group}:\n" + "\n".join(_table(x)) for group, x in groups.items()]
    return "\n".join(parts)


def _settings(letters: str) -> list[str]:
    found = [
        preset
        for preset in presets.every()
        if preset.algorithm.startswith(letters) or preset.name == letters
    ]
    rows = [
        (
            preset.algorithm,
            preset.environment,
            f"--preset={preset.name}",
            preset.source,
        )
        for preset in found
    ]
    notes = [f"{x.name}: {x.note}" for x in found if x.note and letters]
    if not rows and letters not in registry.CLASSES:
        known = [*registry.CLASSES, *(preset.name for preset in presets.every())]
        errors.refuse("settings", letters, known, "tfrl list settings lists all")
    if not rows:
        return [f"No preset is for {letters!r}; its settings are those of its class."]
    return [*_table(rows), *[""] * bool(notes), *notes]


def _environments(letters: str) -> list[str]:
    import gymnasium

    from tfrl.bandits.environments import loading as bandit_loading
    from tfrl.environments import extras, suite_envpool, suite_pettingzoo, suites
    from tfrl.environments.native.jax_environments import libraries

    names = [*gymnasium.registry, *bandit_loading.names()]
    modules = {x.prefix: x.module for x in libraries.LIBRARIES}
    modules[suite_envpool.PREFIX] = "envpool"
    modules[suite_pettingzoo.PREFIX] = "mpe2"
    prefixes = [x for x, module in modules.items() if extras.is_installed(module)]
    chosen = [x for x in prefixes if letters.startswith(x)]
    for prefix in chosen:
        names += suites.find(prefix)[0].names()
    lines = sorted(name for name in names if letters.lower() in name.lower())
    # Their names take seconds, in which they are imported.
    if prefixes and not chosen:
        rows = [(f"{x}...", f"tfrl list environments {x}") for x in prefixes]
        lines += ["", "In C++, in JAX and of several agents:", *_table(rows)]
    known = _EXTRAS | {
        x.extra: (x.module, x.prefix + x.example) for x in libraries.LIBRARIES
    }
    missing = [
        (f"pip install 'tfrl[{extra}]'", example)
        for extra, (module, example) in sorted(known.items())
        if not extras.is_installed(module)
    ]
    if missing:
        lines += ["", "Not installed:", *_table(missing)]
    return lines


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Returns lines with the columns side by side."""
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{word:{width}}" for word, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
