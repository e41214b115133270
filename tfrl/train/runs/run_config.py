"""The configuration of a run, and its comparison with an earlier run's."""

from __future__ import annotations

import pathlib
from collections.abc import Collection, Mapping
from typing import Any

from tfrl.train.runs import run_files


def check_same(
    logdir: pathlib.Path, before: dict[str, Any], now: dict[str, Any]
) -> None:
    """Compares a configuration with the earlier one.

    Raises:
      RunDirectoryError: They differ; the error lists the fields.
    """
    before, now = flatten(before), flatten(now)
    absent = "(absent)"
    differences = [
        f"  {field}: was {before.get(field, absent)!r}, is {now.get(field, absent)!r}"
        for field in sorted({*before, *now})
        if before.get(field, absent) != now.get(field, absent)
    ]
    if differences:
        raise run_files.RunDirectoryError(
            f"logdir {str(logdir)!r}: belongs to a run of another configuration:\n"
            + "\n".join(differences)
            + "\nGive the earlier values to resume it, choose another logdir, or "
            "start again there with overwrite=True or --overwrite."
        )


def grown(
    before: dict[str, Any],
    now: dict[str, Any],
    fields: Collection[str],
    *,
    may_shrink: bool = False,
) -> dict[str, tuple[int, int]]:
    """Returns the old and the new numbers of the fields that have grown.

    Args:
      before: The earlier configuration.
      now: The configuration.
      fields: The names of the fields.
      may_shrink: Whether smaller numbers count as well.
    """
    pairs = {name: (before.get(name), now.get(name)) for name in sorted(fields)}
    return {
        name: (old, new)
        for name, (old, new) in pairs.items()
        if type(old) is type(new) is int and (new > old or (may_shrink and new < old))
    }


def without(config: dict[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """Returns the configuration without some of its fields."""
    return {name: value for name, value in config.items() if name not in fields}


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns the values of a nested configuration, by names such as `a.b`."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat
