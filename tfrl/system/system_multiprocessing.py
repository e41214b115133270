"""TF-Agents' `multiprocessing`: a context whose processes accept any function.

Programs written for TF-Agents `import tfrl.system.system_multiprocessing as
multiprocessing`. tfrl itself uses `tfrl.system.child_process`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import cloudpickle

from tfrl.system import state_savers
from tfrl.system.default import multiprocessing_core
from tfrl.system.default.multiprocessing_core import (
    StateSaver,
    enable_interactive_mode,
    handle_main,
    handle_test_main,
    initialized,
)

__all__ = [
    "StateSaver",
    "enable_interactive_mode",
    "get_context",
    "handle_main",
    "handle_test_main",
    "initialized",
]


def get_context(method: str | None = None) -> Any:
    """Returns a multiprocessing context whose processes and pools accept any function.

    Functions are sent with cloudpickle, including lambdas and closures, together with
    the states of the state savers. Unlike tfrl's own children, the processes import the
    user's script again, which therefore needs an `if __name__ == "__main__"`.

    Args:
      method: See `multiprocessing_core.get_context`.
    """
    return _Context(multiprocessing_core.get_context(method))


class _Context:
    """A multiprocessing context whose `Process` and `Pool` accept any function."""

    def __init__(self, context: Any):
        self._context = context

    def Process(
        self,
        group: None = None,
        target: Callable[..., Any] | None = None,
        name: str | None = None,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> Any:
        """Returns a process that will call `target(*args, **kwargs)`."""
        function = None if target is None else _Portable(target)
        return self._context.Process(
            group, function, name, tuple(args), dict(kwargs or {}), daemon=daemon
        )

    def Pool(self, *args: Any, **kwargs: Any) -> Any:
        """Returns a pool of processes."""
        return _Pool(self._context.Pool(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


class _Pool:
    """A pool of processes that accepts any function."""

    _TAKE_A_FUNCTION = ("apply", "apply_async", "map", "map_async", "imap", "starmap")

    def __init__(self, pool: Any):
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._pool, name)
        if name not in self._TAKE_A_FUNCTION:
            return attribute
        return lambda func, *args, **kwargs: attribute(_Portable(func), *args, **kwargs)

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._pool.terminate()


class _Portable:
    """A function with the global state that it needs, pickled for another process."""

    def __init__(self, function: Callable[..., Any]):
        self._pickled = cloudpickle.dumps((state_savers.collect_states(), function))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        states, function = cloudpickle.loads(self._pickled)
        state_savers.restore_states(states)
        return function(*args, **kwargs)
