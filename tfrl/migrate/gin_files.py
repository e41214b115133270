"""Files of gin-config, which name modules and classes of TF-Agents."""

from __future__ import annotations

import re

from tfrl.migrate.rules.library_names import new_place

_MODULE = re.compile(r"\btf_agents(?:\.[a-z_]\w*)+\b")
_CLASS = re.compile(r"\btf_agents\.(?=[A-Z])")
_CONFIGURED = re.compile(r"^(?:[\w.]+/)?(?:[\w]+\.)*([A-Z]\w*)\.\w+\s*=", re.MULTILINE)


def rewrite(text: str) -> tuple[str, list[tuple[str, str, str]]]:
    """Returns the text of a file of gin with tfrl's names, and what is left to do.

    Args:
      text: The text.
    """
    changed = _MODULE.sub(lambda found: new_place(found[0]), text)
    changed = _CLASS.sub("", changed)
    if changed == text:
        return text, []
    used = sorted(set(_CONFIGURED.findall(changed)))
    note = (
        f"tfrl registers no class with gin: call gin.external_configurable for "
        f"{', '.join(used)} before the file is read."
    )
    return changed, [("1", "gin", note)] if used else []
