"""Counts the work of a program that XLA has compiled, from the text of its HLO.

TensorFlow's Python has no call for XLA's own analysis of costs. Its rules hold here:
a product of matrices or a convolution has two floating-point operations for each
multiply-add, a reduction one for each element that it reads, and any other arithmetic
instruction one for each element of its result.

A loop inside the counted one counts as often as XLA knows that it repeats, or once if
XLA does not know it. Of the branches of a condition the one with the most counts.
"""

from __future__ import annotations

import collections
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from benchmarks import hlo_text

# These compute nothing, and do not run.
_FREE = frozenset({"bitcast", "constant", "get-tuple-element", "parameter", "tuple"})
_ARITHMETIC = re.compile(
    r"abs|add|atan2|cbrt|ceil|clamp|cosine|divide|erf|exponential|exponential-minus-one"
    r"|floor|log|log-plus-one|logistic|maximum|minimum|multiply|negate|power|remainder"
    r"|round-nearest-afz|round-nearest-even|rsqrt|select|sign|sine|sqrt|subtract|tan"
    r"|tanh"
)
_CONTAINERS = frozenset({"call", "conditional", "while"})
_MATRIX_CALL = "__onednn$matmul"

_ARRAY = re.compile(r"\b([a-z]+\d*\w*)\[([\d,]*)\]")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')

Counts = collections.Counter[str]


def state_bytes(program: hlo_text.Program) -> int:
    """Returns the bytes of what the program takes: variables, and the position."""
    return sum(
        _bytes(each.shape)
        for each in program.computations[program.entry]
        if each.opcode == "parameter"
    )


def loop_counts(program: hlo_text.Program) -> Counts:
    """Returns the counts of one iteration of a program's largest loop.

    They are "instructions" (those that run by themselves, and those inside of
    fusions), "kernels" (the former alone), "bytes written" by kernels, "copies", "bytes
    copied", "scalars" (kernels whose result is one number) and "floating-point
    operations".

    Raises:
      ValueError: The program has no loop.
    """
    bodies = [
        _computation_counts(program, called["body"][0])
        for called in map(hlo_text.called, _outer_instructions(program, program.entry))
        if "body" in called
    ]
    if not bodies:
        raise ValueError("program: got one without a loop, expected a while loop.")
    return max(bodies, key=lambda counts: counts["instructions"])


def _outer_instructions(
    program: hlo_text.Program, name: str
) -> Iterator[hlo_text.Instruction]:
    """Yields the instructions of a computation and of those that it calls."""
    for each in program.computations[name]:
        yield each
        if each.opcode == "call":
            yield from _outer_instructions(
                program, hlo_text.called(each)["to_apply"][0]
            )


def _computation_counts(
    program: hlo_text.Program, name: str, is_fused: bool = False
) -> Counts:
    instructions = _by_name(program, name)
    total: Counts = collections.Counter()
    for each in instructions.values():
        if each.opcode not in _FREE:
            operands = [instructions[x].shape for x in each.operands]
            total.update(_own_counts(each, operands, is_fused))  # Keeps zeros.
            written = 0 if is_fused else _bytes_written(program, instructions, each)
            total.update({"bytes written": written})
            total.update(_inner_counts(program, each, is_fused))
    return total


def _by_name(
    program: hlo_text.Program, computation: str
) -> dict[str, hlo_text.Instruction]:
    """Returns the instructions of a computation by their names, in order."""
    return {each.name: each for each in program.computations[computation]}


def _own_counts(
    instruction: hlo_text.Instruction, operands: Sequence[str], is_fused: bool
) -> Counts:
    shape = instruction.shape
    copies = int(instruction.opcode == "copy")
    is_scalar = re.match(r"\w+\[\]", shape) is not None
    return collections.Counter(
        {
            "instructions": 1,
            "kernels": int(not is_fused),
            "copies": copies,
            "bytes copied": copies * _bytes(shape),
            "scalars": int(is_scalar and not is_fused),
            "floating-point operations": _operations(instruction, operands),
        }
    )


def _bytes_written(
    program: hlo_text.Program,
    neighbours: Mapping[str, hlo_text.Instruction],
    instruction: hlo_text.Instruction,
) -> int:
    """Returns what an instruction, or the fusion that it ends, writes into memory.

    XLA updates a part of an array in place.
    """
    opcode, shape = instruction.opcode, instruction.shape
    operands = [neighbours[name] for name in instruction.operands]
    if opcode in _CONTAINERS:
        return 0
    if opcode == "fusion":
        name = hlo_text.called(instruction)["calls"][0]
        inner = _by_name(program, name)
        return _bytes_written(program, inner, program.computations[name][-1])
    if opcode in ("bitcast", "tuple"):
        return sum(_bytes_written(program, neighbours, each) for each in operands)
    if opcode == "dynamic-update-slice":
        shape = operands[1].shape
    if opcode == "scatter":
        shape = " ".join(each.shape for each in operands[len(operands) // 2 + 1 :])
    return _bytes(shape)


def _inner_counts(
    program: hlo_text.Program, instruction: hlo_text.Instruction, is_fused: bool
) -> Counts:
    """Returns the counts of what an instruction calls."""
    called = hlo_text.called(instruction)

    def of(name: str) -> Counts:
        fused = is_fused or instruction.opcode == "fusion"
        return _computation_counts(program, name, fused)

    if instruction.opcode == "while":
        known = _TRIPS.search(instruction.attributes)
        trips = int(known[1]) if known else 1
        each = of(called["body"][0]) + of(called["condition"][0])
        return collections.Counter({key: trips * each[key] for key in each})
    if instruction.opcode == "conditional":
        branches = [of(name) for names in called.values() for name in names]
        return max(branches, key=lambda counts: sum(counts.values()))
    if instruction.opcode in ("call", "fusion"):
        (names,) = called.values()
        return of(names[0])
    return collections.Counter()  # Such as what a reduction does with two numbers.


def _operations(instruction: hlo_text.Instruction, operands: Sequence[str]) -> int:
    """Returns the floating-point operations of an instruction itself."""
    shape, opcode = instruction.shape, instruction.opcode
    size = sum(_sizes(shape))
    if not re.match(r"\(?b?f\d", shape):
        return 0
    if opcode == "dot":
        contracted = re.search(
            r"lhs_contracting_dims=\{([\d,]*)\}", instruction.attributes
        )
        assert contracted is not None
        dims = _dims(operands[0])
        return 2 * size * math.prod(dims[int(i)] for i in _numbers(contracted[1]))
    if opcode == "convolution":
        return 2 * size * _multiplied(operands[1], instruction.attributes)
    if opcode == "custom-call" and _MATRIX_CALL in instruction.attributes:
        return 2 * size * _dims(operands[0])[-1]
    if opcode in ("reduce", "reduce-window"):
        return sum(map(sum, map(_sizes, operands[: len(operands) // 2])))
    return size if _ARITHMETIC.fullmatch(opcode) else 0


def _multiplied(kernel: str, attributes: str) -> int:
    """Returns the numbers that a convolution adds up for each element of its result.

    They are all of its kernel's, apart from those for other output channels.
    """
    labels = re.search(r"dim_labels=\w+_(\w+)->", attributes)
    assert labels is not None
    dims = _dims(kernel)
    return math.prod(dims) // dims[labels[1].index("o")]


def _bytes(shape: str) -> int:
    """Returns the size of a result in bytes."""
    return sum(
        math.prod(_numbers(dims)) * _item_bytes(dtype)
        for dtype, dims in _ARRAY.findall(shape)
    )


def _item_bytes(dtype: str) -> int:
    bits = re.search(r"\d+", dtype)
    return math.ceil(int(bits[0]) / 8) if bits else dtype == "pred"


def _sizes(shape: str) -> list[int]:
    """Returns the numbers of elements of the arrays of a shape."""
    return [math.prod(_numbers(dims)) for _, dims in _ARRAY.findall(shape)]


def _dims(shape: str) -> list[int]:
    """Returns the dimensions of an array's shape."""
    found = _ARRAY.search(shape)
    assert found is not None
    return _numbers(found[2])


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",") if word]
