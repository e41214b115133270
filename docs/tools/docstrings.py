"""Turns docstrings, which are Markdown in Google's style, into reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Mapping

_INLINE_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
# What reStructuredText takes for a substitution or a reference.
_SPECIAL = re.compile(r"\||(?<=\w)_(?!\w)")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def as_rst(lines: list[str], places: Mapping[str, str]) -> list[str]:
    """Returns the lines of a docstring for Sphinx.

    Fenced code, tables and indented equations become blocks that are shown as they are,
    names in backticks links, and other text in backticks code.

    Args:
      lines: The lines of the docstring.
      places: The full names of classes, by their names.
    """
    result: list[str] = []
    text: list[str] = []  # Lines since the last block, whose code may go over lines.
    number = 0
    while number < len(lines):
        end = _end_of_block(lines, number)
        if end == number:
            text.append(lines[number])
            number += 1
            continue
        result += [*_inline(text, places), *_as_block(lines[number:end])]
        text, number = [], end
    return result + _inline(text, places)


def _end_of_block(lines: list[str], start: int) -> int:
    """Returns the line after a block that begins at `start`; `start` if none does."""
    line, end = lines[start], start
    if line.lstrip().startswith("```"):
        end = start + 1
        while end < len(lines) and not lines[end].lstrip().startswith("```"):
            end += 1
        return end + 1
    if line.lstrip().startswith(">>> "):
        while end < len(lines) and lines[end].strip():
            end += 1
        return end
    if line.lstrip().startswith("|"):
        while end < len(lines) and lines[end].lstrip().startswith("|"):
            end += 1
        return end
    before = next((x for x in reversed(lines[:start]) if x.strip()), "")
    is_apart = start > 0 and not lines[start - 1].strip()
    if line.startswith("    ") and is_apart and before[:1].strip():
        while end < len(lines) and (not lines[end].strip() or lines[end][0] == " "):
            end += 1
    return end


def _as_block(lines: list[str]) -> list[str]:
    """Returns lines of code, of a table or of equations as a block of code."""
    if lines[0].lstrip().startswith(">>> "):
        return lines  # reStructuredText knows examples with a prompt.
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    language = "none"
    if lines[0].lstrip().startswith("```"):
        language = lines[0].strip("` ") or "none"
        lines = lines[1:-1]
    elif not lines[0].lstrip().startswith("|"):
        indent = ""
    body = [f"    {line}" if line.strip() else "" for line in lines]
    return ["", f"{indent}.. code-block:: {language}", "", *body, ""]


def _inline(lines: list[str], places: Mapping[str, str]) -> list[str]:
    """Returns text with code in backticks, and lists, as reStructuredText has them."""
    apart: list[str] = []
    in_list = False
    for line in lines:
        if _ITEM.match(line):
            if not in_list and apart and apart[-1].strip():
                apart.append("")
            in_list = True
        elif line.strip() and not line.startswith(" "):
            in_list = False
        apart.append(line.replace("::", ":") if line.endswith("::") else line)
    parts = _INLINE_CODE.split("\n".join(apart))
    for i in range(0, len(parts), 2):
        parts[i] = _SPECIAL.sub(r"\\\g<0>", parts[i])
    for i in range(1, len(parts), 2):
        parts[i] = _code(parts[i], parts[i + 1], places)
    return "".join(parts).split("\n") if apart else []


def _code(code: str, following: str, places: Mapping[str, str]) -> str:
    """Returns code in the text, as a link if it is a name."""
    code = " ".join(code.split())
    glue = "\\ " if following[:1].isalnum() else ""  # As in "`Tensor`s".
    if not _NAME.fullmatch(code):
        return f"``{code}``{glue}"
    place = places.get(code.rpartition(".")[2])
    return f"`{code} <{place}>`{glue}" if place else f"`{code}`{glue}"
