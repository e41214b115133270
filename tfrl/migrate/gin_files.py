"""Files of gin-config, which name modules and classes of TF-Agents."""

from __future__ import annotations

import re

from tfrl.migrate import names
from tfrl.migrate.rules.library_names import OldPlaces

_MODULE = re.compile(r"\btf_agents(?:\.[a-z_]\w*)+\b")
_CLASS = re.compile(r"\btf_agents\.(?=[A-Z])")
_CONFIGURED = re.compile(r"^(?:[\w.]+/)?(?:[\w]+\.)*([A-Z]\w*)\.\w+\s*=", re.MULTILINE)


def rewrite(text: str) -> tuple[str, list[tuple[str, str, str]]]:
    """Returns the text of a file of gin with tfrl's names, and what is left to do.

    Args:
      text: The text.
    """

    def new(match: re.Match[str]) -> str:
        moved = names.moved(match[0], OldPlaces.table, is_exact=False)
        return names.renamed(moved or match[0])

    changed = _CLASS.sub("", _MODULE.sub(new, text))
    if changed == text:
        return text, []
    used = sorted(set(_CONFIGURED.findall(changed)))
    note = (
        f"tfrl registers no class with gin: call gin.external_configurable for "
        f"{', '.join(used)} before the file is read."
    )
    return changed, [("1", "gin", note)] if used else []
