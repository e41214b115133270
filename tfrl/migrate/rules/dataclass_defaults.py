"""Defaults of dataclasses that Python 3.11 refuses."""

from __future__ import annotations

import ast
from typing import Any

import libcst as cst

from tfrl.migrate.rule import File, Rule, code

_NUMPYS = ("array", "zeros", "ones", "full", "arange", "linspace", "eye", "empty")


class DataclassDefaults(Rule):
    """Makes arrays and other dataclasses for each object of a dataclass.

    Example:
       import dataclasses
       import numpy as np
      -import tf_agents
      +import tfrl
      +from dataclasses import field


       @dataclasses.dataclass
       class Config:
      -    low: np.ndarray = np.zeros(3)
      +    low: np.ndarray = field(default_factory=lambda: np.zeros(3))
    """

    name = "dataclass-defaults"
    page = "migrate#dataclasses"
    nodes = (cst.AnnAssign,)

    def leave(self, original: cst.AnnAssign, updated: cst.AnnAssign, file: File) -> Any:
        """See the base class."""
        owner = file.scope.node
        if not _is_dataclass(owner, file) or not isinstance(original.value, cst.Call):
            return updated
        name = file.full_name(original.value.func)
        is_array = name in [f"numpy.{each}" for each in _NUMPYS]
        made = [x.value for x in file.scope.find(code(original.value.func))]
        if not is_array and not any(_is_dataclass(x, file, mutable=True) for x in made):
            return updated
        function = code(file.written("dataclasses.field"))
        value = f"{function}(default_factory=lambda: {code(updated.value)})"
        return updated.with_changes(value=cst.parse_expression(value))


def _is_dataclass(node: ast.AST | None, file: File, *, mutable: bool = False) -> bool:
    """Whether a definition is a dataclass; perhaps only of one that has no hash."""
    for each in getattr(node, "decorator_list", ()) if node else ():
        called = getattr(each, "func", each)
        if file.scopes.module.qualified(ast.unparse(called)) == "dataclasses.dataclass":
            words = {x.arg for x in getattr(each, "keywords", ())}
            return not (mutable and words & {"frozen", "eq", "unsafe_hash"})
    return False
