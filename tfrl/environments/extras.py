"""Checks whether the packages that a suite needs are installed.

The check does not import the packages, so it is fast and has no side effects.
"""

from __future__ import annotations

import importlib.util


def is_installed(*modules: str) -> bool:
    """Whether all of `modules` could be imported."""
    return all(importlib.util.find_spec(module) is not None for module in modules)


def require(suite: str, install: str, *modules: str, note: str = "") -> None:
    """Raises an error unless all of `modules` could be imported.

    Args:
      suite: The name of the suite, such as "suite_atari".
      install: The command that installs the packages.
      *modules: The names of the modules.
      note: A remark about the installation, for the message.

    Raises:
      ImportError: If a module is missing; the message contains the command.
    """
    missing = [module for module in modules if not is_installed(module)]
    if missing:
        raise ImportError(
            f"{suite}: got no module {' and no module '.join(map(repr, missing))}, "
            f"expected the packages the suite needs; install them with: {install}"
            + (f" ({note})" if note else "")
        )
