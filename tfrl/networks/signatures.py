"""Inspects the signatures of a network's constructor and of its `call`."""

from __future__ import annotations

import inspect
from typing import Any


def check_init(cls: type) -> None:
    """Checks that a constructor takes only named arguments.

    Raises:
      RuntimeError: If the constructor takes `*args`.
    """
    parameters = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        raise RuntimeError(
            f"{cls.__name__}.__init__ accepts *args, expected named arguments alone, "
            "since copy() repeats the call by name; name them."
        )


def bind_init(cls: type, args: Any, kwargs: Any) -> dict[str, Any]:
    """Returns the arguments of a constructor call by name."""
    try:
        bound = inspect.signature(cls).bind(*args, **kwargs)
    except TypeError:
        # The arguments do not fit, so __init__ will raise the error.
        return {}
    arguments = dict(bound.arguments)
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            arguments.update(arguments.pop(name, {}))
    return arguments


def parameters_of_call(call: Any) -> tuple[tuple[str, ...], bool]:
    """Returns the names of `call`'s parameters, and whether it takes `**kwargs`."""
    parameters = list(inspect.signature(call).parameters.values())[1:]
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    names = [p.name for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]
    return tuple(names), takes_any
