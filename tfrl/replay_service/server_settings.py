"""Checks the settings of a server. Errors name the setting that is wrong."""

from __future__ import annotations

import math
import numbers
import os
import ssl
from collections.abc import Mapping
from typing import Any

from tfrl.replay_service.transport import tls as tls_lib

_CERTIFICATE = "-----BEGIN CERTIFICATE-----"
_KEY = "PRIVATE KEY-----"
_PEM = "which starts with '-----BEGIN'"


# The largest values of the numbers; all other settings are texts.
_MOST = {"port": 65535, "seed": math.inf}
_EXPECTED = {
    "port": "an integer from 0 to 65535; 0 or none for any free port",
    "seed": "an integer of 0 or more",
}


def check(settings: Mapping[str, Any], where: str = "") -> None:
    """Checks the types and the ranges of settings; None stands for no setting.

    Args:
      settings: The values, by name: "port", "seed", or the name of a text.
      where: The place of the settings, with which an error begins.

    Raises:
      ValueError: If a value is of another type, or out of its range.
    """
    for name, value in settings.items():
        if value is None:
            continue
        if name in _MOST:
            is_integer = isinstance(value, numbers.Integral)
            is_valid = is_integer and not isinstance(value, bool)
            is_valid = is_valid and 0 <= value <= _MOST[name]
        else:
            is_valid = isinstance(value, str) and bool(value)
        if not is_valid:
            # Other people may see the text of an error.
            shown = "another value" if name == "token" and value else f"{value!r:.200}"
            expected = _EXPECTED.get(name, "a text that is not empty")
            raise ValueError(f"{where}{name}: got {shown}, expected {expected}.")


def read_tls(certificate: str | None, key: str | None) -> list[str] | None:
    """Returns the contents of the files of a certificate chain and its private key.

    Args:
      certificate: The path of the certificate chain, or None.
      key: The path of the private key, or None.

    Raises:
      ValueError: If there is only one of them, a file cannot be read, or the
        certificate and the key do not fit together.
    """
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise ValueError(
            "--tls_certificate and --tls_key, or TFRL_REPLAY_TLS_CERTIFICATE and "
            "TFRL_REPLAY_TLS_KEY: give both or neither."
        )
    contents = [
        _read_pem("tls_certificate", certificate, _CERTIFICATE),
        _read_pem("tls_key", key, _KEY),
    ]
    try:
        # Without a password, OpenSSL would ask for one on the terminal.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key, password=lambda: b"")
    except (OSError, ValueError) as error:  # An SSLError is an OSError.
        raise ValueError(
            f"tls_certificate, tls_key: {certificate!r} and {key!r} cannot be used "
            f"together: {error}. Give a certificate chain, and the private key of its "
            "first certificate without a password."
        ) from None
    return contents


def default_tls() -> tuple[bytes, bytes] | None:
    """Returns the certificate chain and the key that the environment names.

    Returns None if the environment names no key, as for a client, which needs only the
    certificate.

    Raises:
      ValueError: See `read_tls`.
    """
    key = os.environ.get(tls_lib.KEY_VARIABLE)
    if not key:
        return None
    found = read_tls(os.environ.get(tls_lib.CERTIFICATE_VARIABLE), key)
    return None if found is None else (found[0].encode(), found[1].encode())


def check_tls(tls: tuple[bytes, bytes] | None) -> None:
    """Checks that `tls` is a certificate chain and a private key in the PEM format.

    Raises:
      ValueError: If it is neither that nor None.
    """
    if tls is None:
        return
    is_pair = isinstance(tls, tuple | list) and len(tls) == 2
    if not is_pair or not all(isinstance(part, bytes) for part in tls):
        raise ValueError(
            "tls: expected a pair of bytes, a certificate chain and its private key; "
            "read them from files that were opened with 'rb'."
        )
    for name, part, mark in zip(
        ("certificate chain", "private key"), tls, (_CERTIFICATE, _KEY), strict=True
    ):
        if mark.encode() not in part:
            raise ValueError(f"tls: got no {name} in the PEM format, {_PEM}.")


def _read_pem(name: str, path: str, mark: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            text = file.read()
    except OSError as error:
        raise ValueError(f"{name}: cannot read {path!r}: {error.strerror}.") from None
    if mark not in text:
        what = "certificate" if mark == _CERTIFICATE else "private key"
        raise ValueError(
            f"{name}: {path!r} holds no {what} in the PEM format, {_PEM}; give such a "
            "file."
        )
    return text
