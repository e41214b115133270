"""The lines that the library tells its user, by Python's logger `tfrl`.

They are records of the level INFO. An application that shows such records, as after
`logging.basicConfig(level=logging.INFO)`, shows these among its own. Any other one gets
the bare lines on standard error, unless it has set a higher level for this logger:

>>> import logging
>>> from tfrl.system import log
>>> logging.getLogger("tfrl").setLevel(logging.WARNING)
>>> log.info("This is not shown.")
>>> logging.getLogger("tfrl").setLevel(logging.NOTSET)
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import warnings
from collections.abc import Iterator

_LOGGER = logging.getLogger("tfrl")
# All but tabs and the ends of lines; the last ones turn the direction of writing.
_CONTROLS = re.compile("[\0-\b\v-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain(text: object) -> str:
    r"""Returns a text that gives a terminal no commands, whoever wrote it.

    >>> from tfrl.system import log
    >>> log.plain("\x1b[2Jgone")
    '\\x1b[2Jgone'
    """
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], str(text))


def say(text: object) -> None:
    """Prints a text, which may have parts from a file or a server; see `plain`."""
    print(plain(text))


def info(text: str) -> None:
    """Logs a line, or writes it to standard error if no handler would show it."""
    text = plain(text)
    if _LOGGER.isEnabledFor(logging.INFO) and _LOGGER.hasHandlers():
        _LOGGER.info(text, stacklevel=2)
    elif _LOGGER.level <= logging.INFO > _LOGGER.manager.disable:
        print(text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """Gives a RuntimeWarning, which is shown as one line, without code around it."""
    warnings.warn_explicit(plain(text), RuntimeWarning, "tfrl", 1)


@contextlib.contextmanager
def silenced(*, is_silent: bool = True) -> Iterator[None]:
    """Tells nothing within this context.

    Args:
      is_silent: Whether to do so; else this context does nothing.
    """
    before = _LOGGER.level
    if is_silent:
        _LOGGER.setLevel(logging.WARNING)
    try:
        yield
    finally:
        _LOGGER.setLevel(before)
