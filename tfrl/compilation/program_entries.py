"""The text in which TensorFlow can read a program that it has stored in bytes.

TensorFlow stores an `XlaSerializedCacheEntry` as bytes, and reads one first as text and
then, after it has reported an error on standard error, as bytes. The text has no error,
and leaves the source of the program out, so that TensorFlow must not compare it with
the source that it is to compile (`--tf_xla_disable_strict_signature_checks`). The key,
which it always compares, has a hash of the source of 64 bits, and another one of the
function's name and arguments. A wrong program would need a collision of both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

# The numbers of the fields that are kept, and the names of those of the key.
_KEY, _EXECUTABLE = 1, 3
_KEYS_FIELDS = {
    1: "signature_fingerprint",
    2: "cluster_fingerprint",
    3: "device_type",
    4: "prefix",
    5: "compiled_using_pjrt",
}
_VARINT, _BYTES = 0, 2  # Types of fields.
# Where a processor has AVX-512, XLA asks its compiler for two preferences and stores
# them with the program. When it loads the program, it adds them again if the list says
# an instruction set of AVX-512, takes them for instruction sets that the processor
# lacks, and reports an error of two kilobytes for each. What has a minus it does not
# look for. The program has been compiled, so nothing else reads the list, and a program
# for another processor is not loaded in any case (`program_kinds`).
_NOT_LOOKED_FOR = re.compile(rb",\+(?=(?:prefer-no-(?:scatter|gather)|avx512\w+),)")
# What ends a text, or begins an escape sequence in it.
_ESCAPED = re.compile(rb'[\0\n"\\]')


def to_text(entry: bytes) -> bytes:
    """Returns a stored program as a text, without the program's source.

    Args:
      entry: What TensorFlow has written.

    Raises:
      ValueError: It has other fields than those of TensorFlow 2.21.
    """
    fields = dict(_fields(entry))
    key, executable = fields.get(_KEY), fields.get(_EXECUTABLE)
    if not isinstance(key, bytes) or not isinstance(executable, bytes):
        raise ValueError(
            f"entry: got fields {sorted(fields)}, expected a key and a program"
        )
    lines = [_line(number, value) for number, value in _fields(key)]
    executable = _NOT_LOOKED_FOR.sub(b",-", executable)
    start = "".join(["key {\n", *lines, '}\nexecutable: "']).encode()
    return start + _ESCAPED.sub(_octal, executable) + b'"\n'


def _line(number: int, value: int | bytes) -> str:
    """Returns a field of the key."""
    if number not in _KEYS_FIELDS:
        raise ValueError(f"entry: got field {number} in its key, expected 1 to 5")
    text = json.dumps(value.decode("ascii")) if isinstance(value, bytes) else value
    return f"  {_KEYS_FIELDS[number]}: {text}\n"


def _octal(found: re.Match[bytes]) -> bytes:
    return b"\\%03o" % found[0][0]


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields the numbers and values of a message's fields."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        value, position = _varint(message, position)
        if tag & 7 == _VARINT:
            yield tag >> 3, value
        elif tag & 7 == _BYTES:
            yield tag >> 3, message[position : position + value]
            position += value
        else:
            raise ValueError(f"entry: got a field of type {tag & 7}, expected 0 or 2")


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """Returns a number of 7 bits in each byte, and the position behind it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = message[position + shift // 7]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + shift // 7 + 1
    raise ValueError("entry: got a number of more than ten bytes")
