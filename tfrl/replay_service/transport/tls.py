"""TLS for the connections between hosts, with the standard library's `ssl`.

A `TlsLayer` encrypts and decrypts bytes in memory. The caller moves them to and from a
socket, so that the same code works for clients and for the server's loop.
"""

from __future__ import annotations

import functools
import os
import ssl
import tempfile

from tfrl.replay_service.transport.wire import Buffer

FIRST_BYTE = b"\x16"  # The ciphers of every handshake.
# Environment variables with the paths of a certificate chain and its private key.
CERTIFICATE_VARIABLE = "TFRL_REPLAY_TLS_CERTIFICATE"
KEY_VARIABLE = "TFRL_REPLAY_TLS_KEY"


class TlsLayer:
    """One end of an encrypted connection."""

    def __init__(self, context: ssl.SSLContext, hostname: str | None = None):
        """Creates the end of a connection that is not yet open.

        Args:
          context: The result of `client_context` or `server_context`.
          hostname: The server's name, which its certificate must contain; None for the
            server's end.
        """
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=hostname is None,
            server_hostname=hostname,
        )

    def handshake(self) -> bool:
        """Continues the handshake; returns whether it is complete.

        Either way, `take` may return bytes to send. After False, received bytes have to
        be passed to `feed` before the next call.

        Raises:
          ssl.SSLError: If the two ends do not agree, or a certificate is not valid.
        """
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def feed(self, received: Buffer) -> None:
        """Takes bytes that the socket has received."""
        self._incoming.write(received)

    def read_into(self, target: memoryview) -> int | None:
        """Writes decrypted bytes to `target`, which has room for one byte or more.

        Returns:
          Their number; None if `feed` must be called first; 0 if the other end has
          closed the connection.

        Raises:
          ssl.SSLError: If the received bytes are not valid.
        """
        try:
            return int(self._object.read(len(target), target))
        except ssl.SSLWantReadError:
            return None
        except ssl.SSLZeroReturnError:
            return 0

    def encrypt(self, data: Buffer) -> bytes:
        """Returns the bytes to send for `data`, and the bytes of `take`."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._object.write(rest) :]
        return self._outgoing.read()

    def take(self) -> bytes:
        """Returns the bytes to send for the handshake or for changes of keys."""
        return self._outgoing.read()


@functools.lru_cache(maxsize=16)
def client_context(roots: bytes) -> ssl.SSLContext:
    """Returns the settings of clients.

    Args:
      roots: Root certificates (PEM) that verify the server's certificate; empty for the
        system's root certificates.

    Raises:
      ValueError: If the certificates cannot be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # The server's own certificate, or an intermediate authority's, is enough.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if not roots:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return context
    try:
        context.load_verify_locations(cadata=roots.decode("ascii", "ignore"))
    except ssl.SSLError as error:
        raise ValueError(
            f"tls_root_certificates: cannot read the certificates: {error}. Give "
            "complete certificates in the PEM format."
        ) from None
    return context


def server_context(chain: bytes, key: bytes) -> ssl.SSLContext:
    """Returns the settings of a server.

    Args:
      chain: The certificate chain, in PEM form.
      key: The private key of its first certificate, in PEM form.

    Raises:
      ValueError: If the certificate and the key cannot be used together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0  # No client resumes a session.
    # The library reads files only. Nobody else can enter this directory.
    with tempfile.TemporaryDirectory(prefix="tfrl-tls-") as directory:
        chain_path, key_path = (os.path.join(directory, name) for name in ("c", "k"))
        for path, part in ((chain_path, chain), (key_path, key)):
            with open(path, "wb") as file:
                file.write(part)
        try:
            # Without a password, OpenSSL would ask for one on the terminal.
            context.load_cert_chain(chain_path, key_path, password=lambda: b"")
        except (OSError, ValueError) as error:  # An SSLError is an OSError.
            raise ValueError(
                f"tls: cannot use the certificate chain and the private key: {error}; "
                "check that they are complete and belong together."
            ) from None
    return context
