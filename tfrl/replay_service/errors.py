"""What goes wrong with a replay service, as exceptions.

`ReverbError` and `DeadlineExceededError` are Reverb's. Arguments that a server refuses
are `ValueError`, as where they are refused before they are sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ReverbError(Exception):
    """The base class of the errors of a replay service."""


class DeadlineExceededError(ReverbError):
    """A call did not complete within the time given for it."""


class ReplayUnavailable(ReverbError):
    """There is no server at the address, or there is none any more."""


class ConnectionLost(ReplayUnavailable):
    """The connection broke; another may succeed."""


class ProtocolError(ReverbError):
    """Bytes came that are no message of this protocol."""


class AuthenticationError(ReverbError):
    """The server wants another token than the one it was given."""


class ResourceExhaustedError(ReverbError):
    """A message is larger, or memory smaller, than what a request takes."""


_BY_CODE: dict[str, type[Exception]] = {
    "invalid_argument": ValueError,
    "not_found": RuntimeError,
    "deadline_exceeded": DeadlineExceededError,
    "unauthenticated": AuthenticationError,
    "resource_exhausted": ResourceExhaustedError,
    "protocol": ProtocolError,
    "unavailable": ReplayUnavailable,
}


def code_of(error: BaseException) -> str:
    """Returns the code by which `error` travels; "internal" if it has none."""
    for code, kind in _BY_CODE.items():
        if type(error) is kind:
            return code
    return "invalid_argument" if isinstance(error, ValueError) else "internal"


def from_meta(meta: Mapping[str, Any]) -> Exception:
    """Returns the exception that an ERROR message stands for.

    Args:
      meta: The message's `code` and `message`.
    """
    kind = _BY_CODE.get(str(meta.get("code")), ReverbError)
    return kind(str(meta.get("message", "The server gave no reason.")))
