"""TF-Agents' hooks around a program's `main`, for scripts that call them.

tfrl does not need them: its processes start from any script or notebook. The hooks run
`main`, and register the given state savers.
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
    """Returns whether one of the functions below was called in this process."""
    return _initialized


def get_context(method: str | None = None) -> context.BaseContext:
    """Returns Python's own multiprocessing context for a start method.

    Args:
      method: "spawn", "forkserver" or "fork"; None for a method that is safe with
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
      parent_main_fn: Takes the arguments of the command line: `main`, or
        `functools.partial(app.run, main)`.
      *args: Arguments of `absl.app.run`.
      extra_state_savers: Savers of more state to send to new processes.
      **kwargs: Keyword arguments of `absl.app.run`.
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
      parent_main_fn: For example, `tf.test.main`.
      *args: Arguments of `parent_main_fn`.
      extra_state_savers: Savers of more state to send to new processes.
      **kwargs: Keyword arguments of `parent_main_fn`.
    """
    enable_interactive_mode(extra_state_savers)
    return parent_main_fn(*args, **kwargs)


def enable_interactive_mode(
    extra_state_savers: Iterable[StateSaver] | None = None,
) -> None:
    """Registers state savers like the other hooks. It can be called repeatedly.

    Args:
      extra_state_savers: Savers of more state to send to new processes.
    """
    global _initialized
    state_savers.add_state_savers(extra_state_savers)
    _initialized = True
