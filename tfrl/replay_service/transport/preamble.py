"""The first bytes of a connection over TCP.

A client sends `MAGIC`, and 32 bytes that prove that it knows the server's token. The
server reads nothing else before it has checked them. It answers with `MAGIC`, which
tells it apart from other servers. Messages follow in both directions; see `framing`.
With TLS, all of this is encrypted.

>>> from tfrl.replay_service.transport import preamble
>>> first = preamble.of_client("a token")
>>> len(first) == preamble.SIZE, first[:4]
(True, b'TFRL')
>>> preamble.of_client(None)[4:] == preamble.NO_TOKEN
True
"""

from __future__ import annotations

import hmac

MAGIC = b"TFRL"
NO_TOKEN = bytes(32)
SIZE = len(MAGIC) + len(NO_TOKEN)
_PURPOSE = b"tfrl replay service"


def of_client(token: str | None) -> bytes:
    """Returns the first bytes of a client with this token, which may be None."""
    return MAGIC + (NO_TOKEN if token is None else digest(token))


def digest(token: str) -> bytes:
    """Returns the 32 bytes that stand for a token."""
    # The token is no key, since keys that differ in zeros at their end are the same.
    return hmac.digest(_PURPOSE, token.encode(), "sha256")
