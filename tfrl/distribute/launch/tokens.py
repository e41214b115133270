"""The token of a run, which its servers ask for and its processes know.

A child process gets the token with its function, over a socket that it shares with its
parent alone. So the token is neither on the command line, which `/proc` shows, nor in
the environment, which `/proc` shows and further children inherit. This module imports
no TensorFlow.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TypeVar

from tfrl.replay_service.transport import connection

_Result = TypeVar("_Result")


def draw() -> str:
    """Returns the token in the environment, or else a new one."""
    return connection.default_token() or secrets.token_hex(32)


def call_with(
    token: str,
    function: Callable[[Callable[[], bool]], _Result],
    is_stopped: Callable[[], bool],
) -> _Result:
    """Calls the function of a process whose clients and servers have the token.

    Args:
      token: The token.
      function: Takes `is_stopped`.
      is_stopped: Returns whether to stop.
    """
    connection.set_default_token(token)
    return function(is_stopped)
