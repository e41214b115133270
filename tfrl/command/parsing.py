"""The flags of a command: how they are defined, read and shown by `--help`."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import difflib
import inspect
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from absl import flags

from tfrl.algorithms import other_words
from tfrl.environments import suites

_WIDTH = 88  # Of the help.
# A value up to a comma outside of parentheses, which may hold others.
_VALUE = re.compile(r"(?:\((?:[^()]|\([^()]*\))*\)|[^,()])+")


class _TupleParser(flags.ArgumentParser[Any]):
    """Parses tuples such as (64, 64), which may lack their parentheses."""

    syntactic_help = "a tuple such as (64, 64)"

    def parse(self, argument: Any) -> Any:
        """Returns the tuple; raises a ValueError for another value."""
        if isinstance(argument, str):
            try:
                argument = ast.literal_eval(argument or "()")
            except SyntaxError as error:
                raise ValueError(str(error)) from None
        return tuple(argument) if isinstance(argument, tuple | list) else (argument,)


class _OptionalParser(flags.FloatParser):
    """Parses a number or None."""

    syntactic_help = "a number or None"
    # Absl takes None for a flag that is not given.
    NOTHING: Final = object()

    def parse(self, argument: Any) -> Any:
        """Returns the number or None; raises a ValueError for another value."""
        return self.NOTHING if argument == "None" else super().parse(argument)


class _SeveralParser(flags.ArgumentParser[Any]):
    """Parses values with commas between them: a dictionary by their texts."""

    def __init__(self, flag: flags.Flag) -> None:
        """Takes the parser of a flag, for one value."""
        self._name, self._one = flag.name, flag.parser
        self.syntactic_help = flag.parser.syntactic_help

    def parse(self, argument: str) -> dict[str, Any]:
        """Returns the values; raises an error that names the wrong one."""
        texts = _VALUE.findall(argument)
        values = {}
        for text in texts if len(texts) > 1 else [argument]:
            try:
                values[text] = _value(self._one.parse(text))
            except (TypeError, ValueError) as error:
                raise flags.IllegalFlagValueError(
                    f"flag --{self._name}={text}: {error}"
                ) from None
        return values


def new(**texts: str) -> flags.FlagValues:
    """Returns the flags of a command, with `--traceback`.

    Args:
      **texts: The help of flags for text without a default, by their names.
    """
    given = flags.FlagValues()
    for name, text in texts.items():
        flags.DEFINE_string(name, None, text, flag_values=given)
    add(given, "traceback", False, "Show the traceback of an error.")
    return given


def add(
    given: flags.FlagValues, name: str, default: Any, text: str, least: int = 1
) -> None:
    """Defines a flag for a truth value, an integer, a number or a text.

    Args:
      given: The flags.
      name: The flag's name.
      default: Its default, whose type is that of the flag.
      text: Its help.
      least: The least integer.
    """
    if isinstance(default, bool):
        flags.DEFINE_bool(name, default, text, flag_values=given)
    elif isinstance(default, int):
        flags.DEFINE_integer(name, default, text, lower_bound=least, flag_values=given)
    else:
        flags.DEFINE_string(name, default, text, flag_values=given)


def add_choice(
    given: flags.FlagValues,
    name: str,
    default: str | None,
    choices: list[str],
    text: str,
) -> None:
    """Defines a flag for one of several words."""
    flags.DEFINE_enum(name, default, choices, text, flag_values=given)


def add_fields(
    given: flags.FlagValues, fields: Mapping[str, dataclasses.Field[Any]]
) -> None:
    """Defines a flag for each of some fields, which is None unless it is given."""
    for name, each in fields.items():
        _add_field(given, name, str(each.type), each.metadata["text"])


def _add_field(given: flags.FlagValues, name: str, kind: str, text: str) -> None:
    if kind == "bool":
        flags.DEFINE_bool(name, None, text, flag_values=given)
    elif kind.startswith("str"):
        flags.DEFINE_string(name, None, text, flag_values=given)
    elif kind == "int":
        flags.DEFINE_integer(name, None, text, flag_values=given)
    elif kind == "float":
        flags.DEFINE_float(name, None, text, flag_values=given)
    else:
        is_tuple = kind.startswith("Sequence")
        parser = _TupleParser() if is_tuple else _OptionalParser()
        serializer = flags.ArgumentSerializer[Any]()
        flags.DEFINE(parser, name, None, text, given, serializer)


def allow_several(given: flags.FlagValues, names: Iterable[str]) -> None:
    """Lets some flags have several values; see `several`."""
    for name in names:
        given[name].parser = _SeveralParser(given[name])


def import_suite(words: Sequence[str]) -> None:
    """Imports the module of the environment in some words; its suite may have options.

    Args:
      words: The words of a command.
    """
    given = new(env="Its name.")
    given.set_gnu_getopt()
    with contextlib.suppress(Exception):  # The run says what is wrong.
        given(["tfrl", *words], known_only=True)
        if given.env:
            suites.find(given.env)


def typed(given: flags.FlagValues) -> dict[str, Any]:
    """Returns the values that the command line gives, by flag; the first of several."""
    return {name: _value(given[name].value) for name in given if given[name].present}


def several(given: flags.FlagValues) -> dict[str, dict[str, Any]]:
    """Returns the values of the flags that have several, by flag and by their texts."""
    values = {name: given[name].value for name in sorted(given)}
    return {k: x for k, x in values.items() if isinstance(x, dict) and len(x) > 1}


def _value(parsed: Any) -> Any:
    if isinstance(parsed, dict):
        return next(iter(parsed.values()))
    return None if parsed is _OptionalParser.NOTHING else parsed


def help_text(first: str, given: flags.FlagValues, without: Iterable[str] = ()) -> str:
    """Returns the help of a command.

    Args:
      first: The text before the flags.
      given: The flags.
      without: The names of flags that are left out.
    """
    hidden = {*without}
    names = [name for name in given if name not in {*hidden, "traceback"}]
    rows = [
        (_shown(given[name]), re.sub(r"^<[^>]*>: ", "", given[name].help))
        for name in [*names, "traceback"]  # In the order of their definitions.
    ]
    return f"{inspect.cleandoc(first)}\n\nFlags:\n{table(rows)}"


def nearest(name: str, given: flags.FlagValues) -> str | None:
    """Returns the flag whose name is nearest to `name`; None if none is near.

    For a flag of another library, it is the flag that does the same.

    Args:
      name: The name, without its dashes.
      given: The flags.
    """
    known = set(given)
    wanted = name.removeprefix("config.").replace("-", "_")
    if wanted in known:
        return wanted
    if same := other_words.same(wanted, known):
        return same
    # The environment has a flag with a shorter name.
    meant = {each: each for each in known} | {"environment": "env"}
    near = difflib.get_close_matches(wanted, meant, n=1)
    return meant[near[0]] if near and meant[near[0]] in known else None


def _shown(flag: flags.Flag) -> str:
    """Returns a flag as the user writes it, with its default if it has one."""
    if flag.boolean or flag.default is None:
        return f"--{flag.name}"
    return f"--{flag.name}={str(flag.default_as_str)[1:-1]}"


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Returns lines of two columns, the second one wrapped at the page's width."""
    rows = list(rows)
    width = max(len(left) for left, _ in rows)
    lines = []
    for left, right in rows:
        wrapped = textwrap.wrap(right, max(_WIDTH - width - 4, 24)) or [""]
        for first, line in zip([left, *[""] * len(wrapped)], wrapped, strict=False):
            lines.append(f"  {first:{width}}  {line}".rstrip())
    return "\n".join(lines)
