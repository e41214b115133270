"""Checks the settings of a server. Errors name the setting that is wrong."""

from __future__ import annotations

import math
import numbers
import os
import ssl
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tfrl.replay_service.transport import tls as tls_lib

_CERTIFICATE = "-----BEGIN CERTIFICATE-----"
_KEY = "PRIVATE KEY-----"
_PEM = "which starts with '-----BEGIN'"


class _Kind(NamedTuple):
    """The values that a setting may have."""

    accepts: Callable[[Any], bool]
    expected: str


def _is_integer(value: Any, least: int, most: float = math.inf) -> bool:
    is_number = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return is_number and least <= value <= most


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


_TEXT = _Kind(lambda v: isinstance(v, str) and bool(v), "a text that is not empty")
_COUNT = _Kind(lambda v: _is_integer(v, 1), "an integer of 1 or more")
_FROM_ZERO = _Kind(lambda v: _is_integer(v, 0), "an integer of 0 or more")
_SELECTOR = _Kind(
    lambda v: isinstance(v, str | Mapping), "a name, or the result of to_config()"
)

SERVER = {
    "host": _TEXT,
    "port": _Kind(
        lambda v: _is_integer(v, 0, 65535),
        "an integer from 0 to 65535; 0 or none for any free port",
    ),
    "token": _TEXT,
    "checkpoint_path": _TEXT,
    "tls_certificate": _TEXT,
    "tls_key": _TEXT,
    "seed": _FROM_ZERO,
    "tables": _Kind(lambda v: isinstance(v, list), "a list of objects"),
}
TABLE = {
    "name": _TEXT,
    "kind": _TEXT,
    "max_size": _COUNT,
    "sampler": _SELECTOR,
    "remover": _SELECTOR,
    "max_times_sampled": _FROM_ZERO,
    "min_size": _COUNT,
    "samples_per_insert": _Kind(_is_number, "a number above 0"),
    "error_buffer": _Kind(
        lambda v: (
            _is_number(v)
            or (isinstance(v, list) and len(v) == 2 and all(map(_is_number, v)))
        ),
        "a number, or a list of two numbers",
    ),
    "rate_limiter": _Kind(
        lambda v: isinstance(v, Mapping), "the result of a rate limiter's to_config()"
    ),
    "signature": _Kind(lambda _: True, ""),
}


def check(
    settings: Mapping[str, Any], kinds: Mapping[str, _Kind] = SERVER, where: str = ""
) -> None:
    """Checks the types and the ranges of settings; None stands for no setting.

    Args:
      settings: The values, by name.
      kinds: `SERVER` or `TABLE`, or a part of one of them.
      where: The place of the settings, with which an error begins.

    Raises:
      ValueError: If a value is not one of its kind.
    """
    for name, value in settings.items():
        if value is not None and not kinds[name].accepts(value):
            # Other people may see the text of an error.
            shown = "another value" if name == "token" and value else f"{value!r:.200}"
            raise ValueError(
                f"{where}{name}: got {shown}, expected {kinds[name].expected}."
            )


def check_combination(settings: Mapping[str, Any], where: str) -> None:
    """Checks that no setting of a table makes another one meaningless.

    Args:
      settings: The values, by the names in `TABLE`.
      where: The place of the settings, with which an error begins.

    Raises:
      ValueError: If a setting would have no effect.
    """
    given = {name for name, value in settings.items() if value is not None}
    kind = settings.get("kind")
    ratio, limits = "samples_per_insert", {"min_size", "error_buffer"}
    for reason, useless in (
        (
            f"kind {kind!r} determines them",
            given - {"kind", "name", "max_size", "signature"}
            if kind in ("queue", "stack")
            else set(),
        ),
        (
            "rate_limiter determines them",
            given & {*limits, ratio} if "rate_limiter" in given else set(),
        ),
        (
            f"only {ratio} needs it",
            given & {"error_buffer"} if ratio not in given else set(),
        ),
    ):
        if useless:
            raise ValueError(
                f"{where}{', '.join(sorted(useless))}: got a value that has no effect, "
                f"because {reason}; leave it out."
            )


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
    """Checks that a certificate chain and a private key are in the PEM format.

    Raises:
      ValueError: If one of them is not.
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
