"""Writes the text of `--help`, and finds the flag that a wrong one was meant to be."""

from __future__ import annotations

import difflib
import pathlib
import re
import textwrap
from collections.abc import Iterable

from absl import flags

_WIDTH = 88
# A field of a configuration file, with the comment beside it.
_FIELD = re.compile(r"^ +config\.(\w+) = (.*?)(?:  # (.*))?$", re.MULTILINE)

_CONFIGS = pathlib.Path(__file__).resolve().parent.parent / "configs"
# The file in `configs` whose settings a configuration file changes.
_BASE = re.compile(r"^from configs import (\w+)$", re.MULTILINE)


def comments(config_file: str | pathlib.Path) -> dict[str, str]:
    """Returns the fields of a configuration file, each with the comment beside it.

    The fields that the file takes from another one, `from configs import NAME`, come
    first, and keep their comments unless the file has others. The comment on
    `num_iterations` counts steps, so it holds only where it stands.
    """
    source = pathlib.Path(config_file).read_text()
    base = _BASE.search(source)
    found = comments(_CONFIGS / f"{base[1]}.py") if base else {}
    if "num_iterations" in found:
        found["num_iterations"] = ""
    for name, _, comment in _FIELD.findall(source):
        found[name] = comment or found.get(name, "")
    return found


def text(script_help: str, config_file: str | None) -> str:
    """Returns the script's docstring, its flags and the fields of its configuration.

    Args:
      script_help: The docstring of the script.
      config_file: The configuration file; None if the script has none.
    """
    parts = [script_help.strip(), "Flags:\n" + _table(_script_flags())]
    if config_file is not None:
        config = flags.FLAGS["config"].value
        helps = comments(config_file)
        # In the order of the file; those that it inherits come last.
        fields = sorted(config, key=lambda field: [*helps, field].index(field))
        rows = [
            (f"--config.{field}={config[field]}", helps.get(field, ""))
            for field in fields
        ]
        parts.append(f"Fields of {config_file}:\n" + _table(rows))
    return "\n\n".join(parts)


def nearest(name: str, config_file: str | None) -> str | None:
    """Returns the flag or field whose name is nearest to `name`; None if none is near.

    Args:
      name: The given name, without its dashes.
      config_file: The configuration file; None if the script has none.
    """
    fields = comments(config_file) if config_file else ()
    meant = {field: f"--config.{field}" for field in fields}
    if not name.startswith("config."):
        meant |= {flag: f"--{flag}" for flag in flags.FLAGS if "." not in flag}
    near = difflib.get_close_matches(name.removeprefix("config."), meant, n=1)
    return meant[near[0]] if near else None


def _script_flags() -> list[tuple[str, str]]:
    """Returns the flags that the scripts define, without absl's and the fields'."""
    rows = []
    for module, defined in flags.FLAGS.flags_by_module_dict().items():
        if not module.startswith("absl"):
            rows += [(_shown(flag), flag.help) for flag in defined]
    return [row for row in rows if not row[0].startswith("--config.")]


def _shown(flag: flags.Flag) -> str:
    """Returns a flag as the user writes it, with its default if it has one."""
    if flag.boolean or flag.default is None:
        return f"--{flag.name}"
    return f"--{flag.name}={flag.default_as_str[1:-1]}"


def _table(rows: Iterable[tuple[str, str]]) -> str:
    """Returns lines of two columns, the second one wrapped at the page's width."""
    rows = list(rows)
    width = max(len(left) for left, _ in rows)
    lines = []
    for left, right in rows:
        wrapped = textwrap.wrap(right, max(_WIDTH - width - 4, 24)) or [""]
        for first, text in zip([left, *[""] * len(wrapped)], wrapped, strict=False):
            lines.append(f"  {first:{width}}  {text}".rstrip())
    return "\n".join(lines)
