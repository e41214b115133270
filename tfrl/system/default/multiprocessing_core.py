"""TF-Agents' hooks around a program's `main`, for scripts that call them.

Nothing in tfrl needs them: processes start from any script, guarded or not, and from
notebooks. They run `main`, and keep the state savers that they are given.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable
from multiprocessing import context
from typing import Any

from tfrl.system import state_savers
from tfrl.system.state_savers import StateSaver

__all__ = [
    "StateSaver",
    "enable_interactive_mode",
    "get_context",
    "handle_main",
    "handle_test_main",
    "initialized",
]

_initialized = False


def initialized() -> bool:
    """Whether one of the functions below was called in this process."""
    return _initialized


def get_context(method: str | None = None) -> context.BaseContext:
    """Returns Python's own multiprocessing context for a start method.

    Args:
      method: "spawn", "forkserver" or "fork"; None for one that is safe beside
        TensorFlow, whose threads do not survive a fork.
    """
    if method is None:
        methods = multiprocessing.get_all_start_methods()
        method = "forkserver" if "forkserver" in methods else "spawn"
    return multiprocessing.get_context(method)


def handle_main(
    parent_main_fn: Callable[..., Any],
    *args: Any,
    extra_state_savers: Iterable[StateSaver] | None = None,
    **kwargs: Any,
) -> Any:
    """Runs `absl.app.run(parent_main_fn, *args, **kwargs)`.

    Args:
      parent_main_fn: Called with the command line's arguments; `main`, or
        `functools.partial(app.run, main)`.
      *args: For `absl.app.run`.
      extra_state_savers: What else new processes are to be told of this one's state.
      **kwargs: For `absl.app.run`.
    """
    from absl import app

    enable_interactive_mode(extra_state_savers)
    return app.run(parent_main_fn, *args, **kwargs)


def handle_test_main(
    parent_main_fn: Callable[..., Any],
    *args: Any,
    extra_state_savers: Iterable[StateSaver] | None = None,
    **kwargs: Any,
) -> Any:
    """Returns `parent_main_fn(*args, **kwargs)`.

    Args:
      parent_main_fn: For example `tf.test.main`.
      *args: For it.
      extra_state_savers: What else new processes are to be told of this one's state.
      **kwargs: For it.
    """
    enable_interactive_mode(extra_state_savers)
    return parent_main_fn(*args, **kwargs)


def enable_interactive_mode(
    extra_state_savers: Iterable[StateSaver] | None = None,
) -> None:
    """Does what the others do before they call `main`; it may be called again.

    Args:
      extra_state_savers: What else new processes are to be told of this one's state.
    """
    global _initialized
    state_savers.add_state_savers(extra_state_savers)
    _initialized = True
