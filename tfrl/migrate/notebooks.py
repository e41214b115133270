"""A notebook's cells as the text of one module, and back."""

from __future__ import annotations

import json
import re

from tfrl.migrate import rewriting
from tfrl.migrate.files import SkippedError

_MARK = '"tfrl migrate: cell {}"'
_DIVIDER = re.compile(r'^"tfrl migrate: cell (\d+)"\n', re.MULTILINE)
# Lines for IPython and the shell, with those that a backslash joins to them.
_MAGIC = re.compile(
    r"^(?:[ \t]*[%!]|[ \t]*\w[\w, ]*= *[%!]|.*\w\?+ *$)(?:.*\\\n)*.*$", re.MULTILINE
)
_HIDDEN = re.compile(r'"tfrl migrate: magic (\d+)"')
# The magics of whole cells whose rest is Python.
_PYTHON = re.compile(r"\s*%%(time|timeit|capture|prun)\b")


class Notebook:
    """The code of a notebook.

    Attributes:
      code: The text of one module with the cells that are Python, divided by strings.
        Lines for IPython and the shell are strings in it.
      unread: The numbers of other cells, from 1, and what is wrong with them.
    """

    def __init__(self, text: str) -> None:
        """Reads a notebook.

        Args:
          text: Its JSON.

        Raises:
          SkippedError: It is not of format 4.
        """
        self._text = text
        try:
            self._json = json.loads(text)
            self._cells = [
                (number, cell)
                for number, cell in enumerate(self._json["cells"], 1)
                if cell["cell_type"] == "code"
            ]
            sources = [
                (number, "".join(cell["source"])) for number, cell in self._cells
            ]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SkippedError(f"no notebook of format 4: {error!r}") from None
        self._magics: list[str] = []
        self.unread: dict[int, str] = {}
        parts = []
        for number, source in sources:
            if source.lstrip().startswith("%%") and not _PYTHON.match(source):
                continue
            hidden = self._hidden(source)
            try:
                rewriting.parsed(hidden)
            except rewriting.UnreadableError as error:
                self.unread[number] = str(error)
                continue
            parts.append(f"{_MARK.format(number)}\n{hidden}\n")
        self.code = "".join(parts)

    def _hidden(self, source: str) -> str:
        """Returns a cell with strings in place of the lines that are no Python."""

        def hide(match: re.Match[str]) -> str:
            line = match[0]
            self._magics.append(line.lstrip(" \t"))
            space = line[: len(line) - len(self._magics[-1])]
            return f'{space}"tfrl migrate: magic {len(self._magics) - 1}"'

        try:
            rewriting.parsed(source)
        except rewriting.UnreadableError:
            return _MAGIC.sub(hide, source)
        return source

    def _shown(self, code: str) -> str:
        return _HIDDEN.sub(lambda x: self._magics[int(x[1])], code)

    @property
    def switches(self) -> list[str]:
        """The lines for IPython and the shell that choose Keras 2."""
        return [line for line in self._magics if "TF_USE_LEGACY_KERAS" in line]

    @property
    def shown(self) -> str:
        """The code for a person, with the cells' numbers as comments."""
        return _DIVIDER.sub(r"# cell \1\n", self._shown(self.code))

    def place(self, line: int) -> str:
        """Returns the cell and its line for a line of the code."""
        above = self.code.split("\n")[:line]
        start = max(i for i, each in enumerate(above) if _DIVIDER.match(f"{each}\n"))
        number = _DIVIDER.match(f"{above[start]}\n")
        return f"cell {number[1] if number else 0}:{line - start - 1}"

    def with_code(self, code: str) -> str:
        """Returns the text of the notebook with other code, and otherwise as it is.

        Raises:
          SkippedError: A cell is not found in the text.
        """
        pieces = _DIVIDER.split(self._shown(code))
        sources = dict(zip(map(int, pieces[1::2]), pieces[2::2], strict=True))
        parts, end = [], 0
        for number, cell in enumerate(self._json["cells"], 1):
            old = cell.get("source", [])
            match = _pattern(old).search(self._text, end)
            if match is None:
                raise SkippedError(f"cell {number} is not found in its JSON")
            new = sources.get(number, "\n")[:-1]
            if number in sources and new != "".join(old):
                parts += [self._text[end : match.start(1)], _written(new, match[1])]
                end = match.end(1)
            else:
                parts.append(self._text[end : match.end()])
                end = match.end()
        return "".join([*parts, self._text[end:]])


def _spellings(text: str) -> str:
    """Returns the pattern of a text in JSON, as the writers of notebooks spell it."""
    spelt = dict.fromkeys(json.dumps(text, ensure_ascii=x) for x in (True, False))
    pattern = "|".join(map(re.escape, spelt))
    for each in "<>&":
        escaped = re.escape(each)
        pattern = pattern.replace(escaped, rf"(?:{escaped}|\\u{ord(each):04x})")
    return f"(?:{pattern})"


def _pattern(source: list[str] | str) -> re.Pattern[str]:
    """Returns the pattern of a cell's source in JSON; its group is the value."""
    texts = [source] if isinstance(source, str) else source
    value = r"\s*,\s*".join(map(_spellings, texts))
    value = value if isinstance(source, str) else rf"\[\s*{value}\s*\]"
    return re.compile(rf'"source"\s*:\s*({value})')


def _written(code: str, old: str) -> str:
    """Returns the value for a cell's code, in the form of the old value."""
    is_ascii = old.isascii()
    if not old.startswith("["):
        return json.dumps(code, ensure_ascii=is_ascii)
    space = old[1 : old.index('"')]
    lines = [json.dumps(x, ensure_ascii=is_ascii) for x in code.splitlines(True)]
    end = old[len(old[:-1].rstrip()) :]
    return f"[{space}{f',{space}'.join(lines)}{end}"
