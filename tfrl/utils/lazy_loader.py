"""TF-Agents' `LazyLoader`, which imports a module when it is used."""

from __future__ import annotations

import importlib
import types
import warnings
from typing import Any


class LazyLoader(types.ModuleType):
    """A module that is imported when its first attribute is used.

    >>> fraction = LazyLoader("fraction", globals(), "fractions")
    >>> fraction.Fraction(1, 2)
    Fraction(1, 2)
    >>> fraction
    <module 'fractions' from ...>
    """

    def __init__(
        self,
        local_name: str,
        parent_module_globals: dict[str, Any],
        name: str,
        warning: str | None = None,
    ) -> None:
        """Creates the module.

        Args:
          local_name: The name in `parent_module_globals`, which gets the module once it
            is imported.
          parent_module_globals: The `globals()` of the module that uses it.
          name: The name of the module to import.
          warning: The text of a warning to give at the import, if any.
        """
        super().__init__(name)
        self._parent, self._local_name = parent_module_globals, local_name
        self._warning = warning

    def __getattr__(self, item: str) -> Any:
        module = importlib.import_module(self.__name__)
        self._parent[self._local_name] = module
        if self._warning:
            warnings.warn(self._warning, stacklevel=2)
        return getattr(module, item)
