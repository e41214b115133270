"""The extras of the package: whether what a suite needs is installed, or what to type.

Nothing is imported to find out, so asking costs nothing and has no effects.
"""

from __future__ import annotations

import importlib.util


def is_installed(*modules: str) -> bool:
    """Whether all of `modules` could be imported."""
    return all(importlib.util.find_spec(module) is not None for module in modules)


def require(suite: str, install: str, *modules: str, note: str = "") -> None:
    """Raises unless all of `modules` could be imported.

    Args:
      suite: What needs them, such as "suite_atari".
      install: The command that installs them.
      modules: Names of modules.
      note: What else to know about installing them.

    Raises:
      ImportError: If one is missing; it holds the command.
    """
    missing = [module for module in modules if not is_installed(module)]
    if missing:
        raise ImportError(
            f"{suite}: got no module {' and no module '.join(map(repr, missing))}, "
            f"expected what the suite runs on; install it with: {install}"
            + (f" ({note})" if note else "")
        )
