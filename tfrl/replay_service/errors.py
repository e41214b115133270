"""The exceptions of the replay service.

`ReverbError` and `DeadlineExceededError` are Reverb's. Invalid arguments raise
`ValueError`, whether the client or the server refuses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ReverbError(Exception):
    """Base class of the errors of the replay service."""


class DeadlineExceededError(ReverbError):
    """A call did not complete within its timeout."""


class ReplayUnavailable(ReverbError):
    """No server answers at the address."""


class ConnectionLost(ReplayUnavailable):
    """The connection was lost. Another attempt may succeed."""


class ProtocolError(ReverbError):
    """The received bytes are no valid message."""


class AuthenticationError(ReverbError):
    """The server expects another token."""


class ResourceExhaustedError(ReverbError):
    """A request is too large for a message, or for the available memory."""


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
    """Returns the code of an error in messages; "internal" if it has none."""
    for code, kind in _BY_CODE.items():
        if type(error) is kind:
            return code
    return "invalid_argument" if isinstance(error, ValueError) else "internal"


def from_meta(meta: Mapping[str, Any]) -> Exception:
    """Returns the exception of an ERROR message.

    Args:
      meta: The `code` and the `message` of the error.
    """
    kind = _BY_CODE.get(str(meta.get("code")), ReverbError)
    return kind(str(meta.get("message", "The server gave no reason.")))
