"""What a rule is, and the settings that it advises to change."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import NamedTuple

from tfrl.reports.evidence import Evidence


class Problem(NamedTuple):
    """What a rule has found.

    Attributes:
      text: The problem, in a sentence.
      figure: The name of the number.
      value: The number.
      threshold: The bound that the number is beyond.
      remedy: What to try first; see `advice`.
      is_cause_of_all: Whether nothing can be learned because of it, so that whatever
        else is found follows from it.
    """

    text: str
    figure: str
    value: float
    threshold: float
    remedy: str
    is_cause_of_all: bool = False


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule.

    Attributes:
      name: Its name.
      source: Where its thresholds are from.
      find: Returns a problem of a run, or None.
    """

    name: str
    source: str
    find: Callable[[Evidence], Problem | None]


def advice(evidence: Evidence, *pieces: str) -> str:
    """Joins pieces of advice, without those about settings that the algorithm lacks.

    A piece that sets what is set already is left out, too.

    A piece names a setting in braces, such as "a smaller {gamma}", or several, as in
    "{actor_learning_rate|learning_rate}", of which the first is meant that the
    algorithm has.

    Args:
      evidence: The run, with the settings of its algorithm.
      *pieces: The pieces; at least one names no setting.
    """
    kept = [_filled(evidence, piece) for piece in pieces]
    texts = [text for text in kept if text is not None]
    if len(texts) > 1:
        texts[-1] = f"or {texts[-1]}"
    return ", ".join(texts) + "."


def learning_rates(evidence: Evidence) -> str:
    """Returns the learning rates of a run, such as " (learning_rate=0.001)"."""
    rates = [
        f"{name}={value:g}"
        for name, value in evidence.settings.items()
        if name.endswith("learning_rate")
        and isinstance(value, int | float)
        and not isinstance(value, bool)
        and value
    ]
    return f" ({', '.join(rates)})" if rates else ""


def _filled(evidence: Evidence, piece: str) -> str | None:
    """Returns a piece with the names of settings; None if it cannot be followed."""
    for braces in re.findall(r"\{[^}]*\}", piece):
        known = [name for name in braces[1:-1].split("|") if name in evidence.settings]
        if not known:
            return None
        if f"{braces}=True" in piece and evidence.settings[known[0]] is True:
            return None
        piece = piece.replace(braces, known[0])
    return piece
