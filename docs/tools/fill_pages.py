"""Fills in what pages take from the code, from files of data and from measurements.

    python docs/tools/fill_pages.py

The first of two comments on a page says which lines belong between them:

    <!-- code: begin losses/td.py:td_target -->
    <!-- code: end -->

On the pages of algorithms, `code` shows functions of the package, `settings` the
settings of algorithms, `common` the settings of all of them, `presets` the settings for
environments, `scores` the agents' rows of the score table with a picture of each agent,
`choices` the best agents by that table, and `health` the rows of the agents in
docs/health.md. On other pages, `absent` shows a
table of `tfrl/absent_names.json`, `changes` that of `tfrl.startup`, `rules` the rules
of `tfrl migrate`, `words` other libraries' words, `columns` those of a run's log, and
`floors` the packages by the contract of import-linter in pyproject.toml. A test
compares the pages with what is written here.
"""

from __future__ import annotations

import ast
import functools
import pathlib
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_DOCS = _ROOT / "docs"
_BLOCK = re.compile(r"<!-- (\w+): begin ?(.*?) -->\n.*?<!-- \1: end -->", re.DOTALL)
# How often a run evaluates, logs and saves says nothing about how it learns.
_INTERVALS = (
    "eval_interval",
    "num_eval_episodes",
    "log_interval",
    "checkpoint_interval",
)
PAGES = [
    path
    for path in (_ROOT / "tfrl" / "README.md", *sorted(_DOCS.rglob("*.md")))
    if _BLOCK.search(path.read_text(encoding="utf-8"))
]


def filled(text: str) -> str:
    """Returns a page with its blocks filled in."""
    return _BLOCK.sub(_block, text)


def _block(found: re.Match[str]) -> str:
    kind, arguments = found[1], found[2]
    lines = _KINDS[kind](arguments)
    begin = f"<!-- {kind}: begin{' ' if arguments else ''}{arguments} -->"
    return "\n".join([begin, "", *lines, "", f"<!-- {kind}: end -->"])


def _code(arguments: str) -> Iterator[str]:
    """Yields functions, each named as FILE:NAME or FILE:CLASS.NAME."""
    for i, place in enumerate(arguments.split()):
        file, _, name = place.partition(":")
        path = pathlib.Path("tfrl") / file
        yield from [""] * bool(i)
        yield f"`{name}` in [`{path}`](../../{path}):"
        yield from ("", "```py", *_listing(_ROOT / path, name), "```")


def _listing(path: pathlib.Path, name: str) -> list[str]:
    """Returns a function's lines, and of a method the first line of its class, too.

    Docstrings, checks of arguments and summaries are left out.
    """
    text = path.read_text(encoding="utf-8")
    node: Any = ast.parse(text)
    kept: set[int] = set()
    for part in name.split("."):
        (node,) = (each for each in node.body if getattr(each, "name", None) == part)
        kept.add(node.lineno)
    kept.update(range(node.lineno, node.end_lineno + 1))
    each: Any
    for each in filter(_is_left_out, ast.walk(node)):
        kept.difference_update(range(each.lineno, each.end_lineno + 1))
    lines = text.splitlines()
    return [lines[number - 1] for number in sorted(kept)]


def _is_left_out(node: Any) -> bool:
    """Whether a node is a docstring, a call of `check_...`, or writes summaries."""
    if isinstance(node, ast.If):
        return "summaries" in ast.unparse(node.test)
    value = node.value if isinstance(node, ast.Expr) else None
    if isinstance(value, ast.Constant):
        return isinstance(value.value, str)
    called = getattr(value, "func", None)
    name = getattr(called, "id", getattr(called, "attr", ""))
    return name.lstrip("_").startswith("check_")


def _settings(arguments: str) -> Iterator[str]:
    """Yields the table of the settings of one or several algorithms."""
    from tfrl.algorithms import mixins, registry

    kinds = [registry.find(name) for name in arguments.split()]
    common = mixins.Networks.defaults()
    columns = [kind.defaults() for kind in kinds]
    fields = {name: x for kind in kinds for name, x in kind.setting_fields().items()}
    yield _row("setting", *(f"`tfrl.{kind.__name__}`" for kind in kinds), "meaning")
    yield "|---" * (len(kinds) + 2) + "|"
    for name, field in fields.items():
        values = [_shown(column.get(name)) for column in columns]
        changed = any(column.get(name) != common.get(name) for column in columns)
        if name not in _INTERVALS and (name not in common or changed):
            yield _row(f"`{name}`", *values, field.metadata["text"])


def _common(_: str) -> Iterator[str]:
    """Yields the table of the settings of all algorithms, and of environments."""
    from tfrl.algorithms import mixins

    yield from (_row("setting", "default", "meaning"), "|---|---|---|")
    for name, field in mixins.Networks.run_fields().items():
        yield _row(f"`{name}`", _shown(field.default), field.metadata["text"])


def _presets(arguments: str) -> Iterator[str]:
    """Yields the table of the presets that algorithms have."""
    from tfrl.algorithms import presets

    yield _row("preset", "made for", "source", "settings that differ from the defaults")
    yield "|---|---|---|---|"
    for preset in presets.every():
        if preset.algorithm in arguments.split():
            changes = (
                f"`{name}={value}`"
                for name, value in preset.settings.items()
                if name not in _INTERVALS
            )
            made_for = [preset.environment]
            if preset.variant:
                made_for.append(f'only with `preset="{preset.name}"`')
            if preset.actors:
                made_for.append("with actors")
            if preset.family:
                made_for.append("and others like it")
            if preset.kinds:
                made_for.append(
                    f"every other environment of {' or '.join(preset.kinds)}"
                )
            cells = ", ".join(made_for), preset.source, ", ".join(changes) or "none"
            yield _row(f"`{preset.name}`", *cells)


def _scores(arguments: str) -> Iterator[str]:
    """Yields the rows of agents in the score table, and a picture of each agent."""
    from benchmarks import score_curves, score_table

    pictures: dict[str, str] = {}
    curves = score_curves.read()
    own = []
    for entry, rows in _measured():
        if entry.agent in arguments.split(", "):
            own.append(score_table.cells(entry, rows, curves))
            environment = rows[0]["environment"]
            picture = score_table.picture_of(entry, environment)
            title = f"{entry.agent} on {environment}"
            pictures.setdefault(entry.agent, f"![{title}](../scores/{picture})")
    yield from score_table.tables(own)
    yield from ("", *pictures.values())


def _choices(_: str) -> Iterable[str]:
    """Returns the table of the best agents by task and steps."""
    from benchmarks import score_choices, score_curves

    return score_choices.table(dict(_measured()), score_curves.read())


@functools.cache
def _measured() -> list[tuple[Any, list[dict[str, str]]]]:
    """Returns the entries of the score table that have runs, each with these."""
    from benchmarks import score_entries, scores

    rows = scores.read_rows()
    runs = [(e, [row for row in rows if e.has(row)]) for e in score_entries.ENTRIES]
    return [(entry, own) for entry, own in runs if own]


def _health(arguments: str) -> Iterable[str]:
    """Returns the rows of agents in the table of runs that were broken on purpose."""
    page = (_DOCS / "health.md").read_text(encoding="utf-8")
    _, _, table = page.partition("| Run | Rule | Found |\n")
    names = tuple(f"| {name}{end}" for name in arguments.split(", ") for end in " ,")
    rows = [line for line in table.splitlines() if line.startswith(names)]
    return ["| Run | Rule | Found |", "|---|---|---|", *rows]


def _absent(section: str) -> Iterator[str]:
    """Yields the table of names of another library that tfrl does not have."""
    from tfrl import imports

    rows = [row for row in imports.absent_rows() if row.section == section]
    package = "tfrl.acme" if rows[0].library == "Acme" else "tfrl"
    yield from (_row(rows[0].library, "tfrl"), "|---|---|")
    for row in rows:
        module = row.module.removeprefix(package).removeprefix(".")
        names = ", ".join(f"`{name}`" for name in row.names)
        yield _row(f"`{module}`: {names}" if module else names, row.instead)


def _changes(_: str) -> Iterator[str]:
    """Yields the table of what `import tfrl` changes in the process."""
    from tfrl import startup

    yield from (_row("what changes", "when and how", "what for"), "|---|---|---|")
    for what, (how, purpose) in startup.CHANGES.items():
        yield _row(what, how, purpose)


def _rules(_: str) -> Iterator[str]:
    """Yields the rules of `tfrl migrate`, with their examples."""
    from tfrl.migrate.rules import RULES

    for i, rule in enumerate(RULES):
        yield from [""] * bool(i)
        what = " ".join(rule.text.partition("Example:")[0].split())
        page, hash_, section = rule.page.partition("#")
        link = f"[The page]({page}.md{hash_}{section}) says more."
        if page == "migrate":
            link = f"[A section]({hash_}{section}) says more."
        yield from (f"### {rule.name}", "", f"{what} {link}", "")
        yield from ("```diff", *rule.example.splitlines(), "```")


def _words(_: str) -> Iterator[str]:
    """Yields the tables of other libraries' words, and of what to write here."""
    from tfrl.algorithms import other_words

    words: dict[str, list[str]] = {}
    for word, same in other_words.SAME.items():
        here = ", ".join(f"`{name}`" for name in same)
        words.setdefault(here, []).append(f"`{word}`")
    yield from (_row("elsewhere", "here"), "|---|---|")
    yield from (_row(", ".join(elsewhere), here) for here, elsewhere in words.items())
    yield from ("", _row("elsewhere", "what to do"), "|---|---|")
    for word, line in other_words.LINES.items():
        yield _row(f"`{word.partition(' ')[0]}`", line.format("PPO"))
    for method, line in {**other_words.METHODS, "load": "tfrl.load(folder)"}.items():
        yield _row(f"the method `{method}`", line.format("PPO"))


def _columns(_: str) -> Iterator[str]:
    """Yields the table of the columns of a run's log."""
    from tfrl.train.runs import columns

    yield _row("number", "what it is", "unit", "measured by", "tag")
    yield "|---|---|---|---|---|"
    for column in columns.COLUMNS:
        name = f"`{column.name}`{' *' * column.in_table}"
        if column.has_parts:
            name += f", `<part>_{column.name}`"
        tag = f"`{column.tag}`" if column.tag else ""
        yield _row(name, column.text, column.unit, column.writer, tag)


def _floors(_: str) -> Iterator[str]:
    """Yields the table of the packages in their order, by floors.

    A comment in the contract's list is the name of a floor.
    """
    text = (_ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    floors: dict[str, list[str]] = {}
    for line in re.search(r"\nlayers = \[\n(.*?)\n\]", text, re.DOTALL)[1].splitlines():
        kind, value = re.fullmatch(r'    (?:(#) |")(.*?)(?:",)?', line).groups()
        if kind:
            floors[value] = packages = []
        else:
            packages += value.split(" | ")
    in_order = [name for names in floors.values() for name in names]
    assert in_order == " | ".join(contracts[0]["layers"]).split(" | ")
    yield from (_row("floor", "packages, from above"), "|---|---|")
    for floor, names in floors.items():
        yield _row(floor, ", ".join(f"`{x.removeprefix('tfrl.')}`" for x in names))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _shown(value: Any) -> str:
    """Returns a default as it stands in a table; nothing for a setting that is not."""
    if value is None:
        return ""
    return f"`{value:g}`" if isinstance(value, float) else f"`{value!r}`"


_WRITERS = (
    *(_code, _settings, _common, _presets, _scores, _choices, _health),
    *(_absent, _changes, _rules, _words, _columns, _floors),
)
_KINDS = {writer.__name__[1:]: writer for writer in _WRITERS}


if __name__ == "__main__":
    sys.path.insert(0, str(_ROOT))
    for _page in PAGES:
        _page.write_text(filled(_page.read_text(encoding="utf-8")), encoding="utf-8")
