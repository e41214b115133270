"""The exceptions of the replay service.

`ReverbError` and `DeadlineExceededError` have the names of Reverb's exceptions. Invalid
arguments raise `ValueError`, whether the client or the server refuses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfrl.system import log


class ReverbError(Exception):
    """Base class of the errors of the replay service."""


class DeadlineExceededError(ReverbError):
    """Raised if a call did not complete within its timeout."""


class ReplayUnavailable(ReverbError):
    """Raised if no server answers at the address."""


class ConnectionLost(ReplayUnavailable):
    """Raised if the connection was lost. Another attempt may succeed."""


class ProtocolError(ReverbError):
    """Raised if received bytes are not a valid message."""


class AuthenticationError(ReverbError):
    """Raised if the server expects another token."""


class ResourceExhaustedError(ReverbError):
    """Raised if a request is too large for a message or for the available memory."""


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
    """Returns an error's code for messages; "internal" if the error has no code."""
    for code, kind in _BY_CODE.items():
        if type(error) is kind:
            return code
    return "invalid_argument" if isinstance(error, ValueError) else "internal"


def from_meta(meta: Mapping[str, Any]) -> Exception:
    """Returns the exception that an ERROR message describes.

    Args:
      meta: The `code` and the `message` of the error.
    """
    kind = _BY_CODE.get(str(meta.get("code")), ReverbError)
    return kind(log.plain(meta.get("message", "The server gave no reason.")))
