"""A notebook's cells as the text of one module, and back."""

from __future__ import annotations

import json
import re

from tfrl.migrate import rule
from tfrl.migrate.files import SkippedError

_MARK = '"tfrl migrate: cell {}"'
_DIVIDER = re.compile(r'^"tfrl migrate: cell (\d+)"\n', re.MULTILINE)
# Lines for IPython and the shell, with those that a backslash joins to them.
_MAGIC = re.compile(
    r"^(?:[ \t]*[%!]|[ \t]*\w[\w, ]*= *[%!]|.*\w\?+ *$)(?:.*\\\n)*.*$", re.MULTILINE
)
_HIDDEN = re.compile(r'"tfrl migrate: magic (\d+)"')
_KEY = re.compile(r'"source"\s*:\s*')
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
            sources = {
                number: "".join(cell["source"])
                for number, cell in enumerate(self._json["cells"], 1)
                if cell["cell_type"] == "code"
            }
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SkippedError(f"no notebook of format 4: {error!r}") from None
        self._magics: list[str] = []
        self.unread: dict[int, str] = {}
        parts = []
        for number, source in sources.items():
            if source.lstrip().startswith("%%") and not _PYTHON.match(source):
                continue
            hidden = self._hidden(source)
            try:
                rule.scopes_in(hidden)
            except rule.UnreadableError as error:
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
            rule.scopes_in(source)
        except rule.UnreadableError:
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
            start, stop = _place(self._text, end, old)
            new = sources.get(number, f"{''.join(old)}\n")[:-1]
            value = self._text[start:stop]
            value = _written(new, value) if new != "".join(old) else value
            parts += [self._text[end:start], value]
            end = stop
        return "".join([*parts, self._text[end:]])


def _place(text: str, start: int, source: list[str] | str) -> tuple[int, int]:
    """Returns where the JSON of a cell's source begins and ends.

    Raises:
      SkippedError: It is not there.
    """
    for key in _KEY.finditer(text, start):
        found, end = json.JSONDecoder().raw_decode(text, key.end())
        if found == source:
            return key.end(), end
    raise SkippedError(f"the cell with the source {source!r:.40} is not in its JSON")


def _written(code: str, old: str) -> str:
    """Returns the value for a cell's code, in the form of the old value."""
    is_list = old.startswith("[")
    texts = code.splitlines(keepends=True) if is_list else [code]
    lines = [json.dumps(x, ensure_ascii=old.isascii()) for x in texts]
    start, end = re.split(r'".*"', old, flags=re.DOTALL)
    return f"{start}{f',{start[1:]}'.join(lines)}{end}"
