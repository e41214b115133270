"""The fields that tuning searches, and their ranges, in words and as Optuna's.

In words a range is `1e-5..1e-2:log`, without `:log` for a uniform one, and choices are
`32,64,128`. This module imports neither TensorFlow nor Optuna at the top.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from absl import flags

from tfrl.algorithms import settings as settings_lib

if TYPE_CHECKING:
    import optuna

    from tfrl.algorithms.builder import Builder

# The fields of a search: all with a range, some, or ranges by name.
Given = str | Iterable[str] | Mapping[str, Any] | None

_SCALARS = (bool, int, float, str, type(None))


def fields(kind: type[Builder], given: Given) -> dict[str, Any]:
    """Returns the range of each field to search, in the order of their names.

    Args:
      kind: The algorithm.
      given: The names of fields, or a mapping of names to ranges. A range is one from
        `settings`, words, a distribution of Optuna, or None for the field's own range.
        Without names, None takes the live fields that have a range (all fields with a
        range if no live field has one), and "all" takes every field with a range.

    Raises:
      ValueError: There is no such field, or it has no default range, or a value is not
        allowed.
    """
    own, known = kind.search_ranges(), kind.run_fields()
    if given is None:
        given = own.keys() & kind.live_settings() or own
    elif given == "all":
        given = own
    if not isinstance(given, Mapping):
        names = given.split(",") if isinstance(given, str) else given
        given = dict.fromkeys(names)
    found = {}
    for name in sorted(given):
        if name not in known:
            raise ValueError(
                f"search: got {name!r}, expected settings of the algorithm; those with "
                f"a default range are {', '.join(sorted(own))}."
            )
        each = found[name] = _range(kind, name, given[name])
        ends = each if isinstance(each, tuple) else getattr(each, "choices", None)
        check = known[name].metadata["check"]
        for value in (ends or (each.low, each.high)) if check else ():
            check(name, value, remedy=f"give a range within it for {name}")
    if not found:
        raise ValueError("search: got no field, expected one or more; name some.")
    return found


def _range(kind: type[Builder], name: str, given: Any) -> Any:
    if given is None or given == "":
        own = kind.search_ranges()
        if name not in own:
            raise ValueError(
                f"search: {name} has no default range, expected one; give it, such "
                "as 0.1..0.9, 1e-5..1e-2:log or 32,64,128."
            )
        return own[name]
    if isinstance(given, str):
        default = kind.run_fields()[name].default
        if isinstance(default, bool):
            return _truths(name, given)
        return _parse(name, given, is_whole=isinstance(default, int))
    return tuple(given) if isinstance(given, list) else given


def _truths(name: str, words: str) -> tuple[bool, ...]:
    """Returns the truth values that words name, as the flag of the setting does."""
    try:
        return tuple(map(flags.BooleanParser().parse, words.split(",")))
    except ValueError:
        raise ValueError(
            f"search: got {words!r} for {name}, expected truth values; write "
            "false,true."
        ) from None


def _parse(name: str, words: str, *, is_whole: bool) -> settings_lib.Search:
    """Returns the range that words name."""
    low, is_range, high = words.partition("..")
    if not is_range:
        try:
            return tuple(ast.literal_eval(f"[{words}]"))
        except (SyntaxError, ValueError):
            return tuple(words.split(","))
    high, _, scale = high.partition(":")
    try:
        as_number = int if is_whole else float
        made = settings_lib.Range(as_number(low), as_number(high), scale == "log")
        if scale not in ("", "log") or not made.low < made.high:
            raise ValueError
        if made.is_log and made.low <= 0:
            raise ValueError
    except ValueError:
        raise ValueError(
            f"search: got {words!r} for {name}, expected a range of rising numbers, "
            "above 0 with :log; write 0.1..0.9, 1e-5..1e-2:log, or choices, 32,64,128."
        ) from None
    return made


def text(searched: Any) -> str:
    """Returns the words of a range."""
    if isinstance(searched, settings_lib.Range):
        scale = ":log" if searched.is_log else ""
        return f"{searched.low:g}..{searched.high:g}{scale}"
    if isinstance(searched, tuple):
        return ",".join(str(value).replace(" ", "") for value in searched)
    return str(searched)


def distributions(
    searched: Mapping[str, Any],
) -> dict[str, optuna.distributions.BaseDistribution]:
    """Returns Optuna's distributions of the ranges."""
    return {name: _distribution(each) for name, each in searched.items()}


def _distribution(searched: Any) -> optuna.distributions.BaseDistribution:
    from optuna import distributions as of

    if isinstance(searched, tuple):
        return of.CategoricalDistribution(tuple(map(_stored, searched)))
    if not isinstance(searched, settings_lib.Range):
        return searched
    low, high = searched.low, searched.high
    if isinstance(low, int) and isinstance(high, int):
        return of.IntDistribution(low, high, log=searched.is_log)
    return of.FloatDistribution(low, high, log=searched.is_log)


def draw(
    trial: optuna.Trial, name: str, distribution: optuna.distributions.BaseDistribution
) -> None:
    """Draws a value of a trial, unless the trial has it already."""
    from optuna import distributions as of

    if isinstance(distribution, of.CategoricalDistribution):
        trial.suggest_categorical(name, distribution.choices)
    elif isinstance(distribution, of.IntDistribution):
        low, high = distribution.low, distribution.high
        trial.suggest_int(name, low, high, step=distribution.step, log=distribution.log)
    else:
        assert isinstance(distribution, of.FloatDistribution)
        low, high = distribution.low, distribution.high
        trial.suggest_float(
            name, low, high, step=distribution.step, log=distribution.log
        )


def _stored(choice: Any) -> Any:
    """Returns a choice as Optuna's storages hold it; a sequence becomes its text."""
    return choice if isinstance(choice, _SCALARS) else repr(choice)


def values(searched: Mapping[str, Any], drawn: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of settings for Optuna's draws, in the same order."""
    found = {}
    for name, each in searched.items():
        choices = each if isinstance(each, tuple) else ()
        originals = {_stored(choice): choice for choice in choices}
        found[name] = originals.get(drawn[name], drawn[name])
    return found
