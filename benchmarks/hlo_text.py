"""Reads the text of a program in HLO, the language of XLA."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_COMPUTATION = re.compile(r"^(ENTRY )?%([\w.-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%([\w.-]+) = (.+)$")
_CALLED = re.compile(
    r"\b(calls|to_apply|body|condition|branch_computations|\w+_computation)="
    r"\{?(%[\w.-]+(?:, %[\w.-]+)*)"
)


class Instruction(NamedTuple):
    """An instruction of a computation.

    Attributes:
      name: Its name.
      shape: The shape of its result, such as "f32[64,2]{1,0}".
      opcode: What it does, such as "add".
      operands: The names of its operands.
      attributes: The text after the operands.
    """

    name: str
    shape: str
    opcode: str
    operands: tuple[str, ...]
    attributes: str


class Program(NamedTuple):
    """The computations of a program.

    Attributes:
      entry: The name of the one that the program begins with.
      computations: The instructions of each.
    """

    entry: str
    computations: Mapping[str, Sequence[Instruction]]


def parse(text: str) -> Program:
    """Returns the program of a text of HLO.

    Raises:
      ValueError: The text has no entry computation.
    """
    entry = ""
    current: list[Instruction] = []
    computations: dict[str, list[Instruction]] = {}
    for line in text.splitlines():
        if found := _COMPUTATION.match(line):
            current = computations[found[2]] = []
            entry = found[2] if found[1] else entry
        elif found := _INSTRUCTION.match(line):
            current.append(_instruction(found[1], found[2]))
    if not entry:
        raise ValueError(
            f"text: got {text[:60]!r}, expected the text of a program in HLO, with a "
            "line that begins with ENTRY."
        )
    return Program(entry, computations)


def _instruction(name: str, text: str) -> Instruction:
    """Returns an instruction from the text behind "="."""
    shape, rest = _first_word(text)
    opcode, _, rest = rest.partition("(")
    end = _closing(f"({rest}") - 1
    operands = tuple(re.findall(r"%([\w.-]+)", rest[:end]))
    return Instruction(name, shape, opcode, operands, rest[end + 1 :])


def _first_word(text: str) -> tuple[str, str]:
    """Divides a text behind a shape, which has spaces if it is a tuple's."""
    if text.startswith("("):
        end = _closing(text) + 1
        return text[:end], text[end:].lstrip()
    first, _, rest = text.partition(" ")
    return first, rest


def _closing(text: str) -> int:
    """Returns the place of the parenthesis that closes the first one of a text."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return place
    raise ValueError(f"text: got {text[:60]!r}, expected a closing parenthesis.")


def called(instruction: Instruction) -> dict[str, list[str]]:
    """Returns the names of the computations that an instruction calls."""
    return {
        key: [name.lstrip("%") for name in names.split(", ")]
        for key, names in _CALLED.findall(instruction.attributes)
    }
