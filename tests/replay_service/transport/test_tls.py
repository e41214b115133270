"""Two ends of TLS, whose bytes are passed on in memory."""

import pathlib
import ssl

import pytest

from tfrl.replay_service.transport import tls

DATA = pathlib.Path(__file__).parents[1] / "data"
CERTIFICATE, KEY, OTHER = (
    (DATA / name).read_bytes()
    for name in ("certificate.pem", "key.pem", "other_certificate.pem")
)


def ends(roots=CERTIFICATE, hostname="localhost"):
    server = tls.TlsLayer(tls.server_context(CERTIFICATE, KEY))
    return tls.TlsLayer(tls.client_context(roots), hostname), server


def shake_hands(client, server):
    """Completes the handshake; returns the first bytes of each end."""
    first = []
    is_complete = [False, False]
    while not all(is_complete):
        for i, (one, other) in enumerate(((client, server), (server, client))):
            is_complete[i] = one.handshake()
            data = one.take()
            other.feed(data)
            first.append(data[:1])
    return first[:2]


def read_all(layer, most=1 << 20):
    data, target = b"", memoryview(bytearray(most))
    while count := layer.read_into(target):
        data += target[:count]
    return data, count


def test_what_one_end_encrypts_the_other_decrypts():
    client, server = ends()
    assert shake_hands(client, server) == [tls.FIRST_BYTE] * 2
    assert client._object.version() in ("TLSv1.2", "TLSv1.3")
    for one, other in ((client, server), (server, client)):
        message = bytes(range(256)) * 1000
        encrypted = one.encrypt(message)
        assert message[:32] not in encrypted
        other.feed(encrypted[:5000])
        some, count = read_all(other)
        assert count is None  # It needs more bytes.
        other.feed(encrypted[5000:])
        assert some + read_all(other, 1000)[0] == message


def test_the_end_of_a_connection_and_changed_bytes_are_told():
    client, server = ends()
    shake_hands(client, server)
    with pytest.raises(ssl.SSLWantReadError):
        client._object.unwrap()
    server.feed(client.take())
    assert read_all(server) == (b"", 0)
    client, server = ends()
    shake_hands(client, server)
    encrypted = bytearray(client.encrypt(b"a message"))
    encrypted[-1] ^= 1
    server.feed(encrypted)
    with pytest.raises(ssl.SSLError):
        read_all(server)


@pytest.mark.parametrize(
    ("roots", "hostname"),
    [(OTHER, "localhost"), (b"", "localhost"), (CERTIFICATE, "replay.example.org")],
)
def test_another_certificate_or_name_is_refused(roots, hostname):
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(*ends(roots, hostname))


def test_the_name_can_be_an_address():
    shake_hands(*ends(hostname="127.0.0.1"))


@pytest.mark.parametrize("old", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
@pytest.mark.filterwarnings("ignore:.*TLSv1:DeprecationWarning")
def test_versions_before_1_2_are_refused(old):
    server = tls.TlsLayer(tls.server_context(CERTIFICATE, KEY))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=CERTIFICATE.decode())
    context.minimum_version = context.maximum_version = old
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError):
        shake_hands(tls.TlsLayer(context, "localhost"), server)


def test_certificates_that_cannot_be_read_are_named():
    with pytest.raises(ValueError, match="tls_root_certificates: cannot read"):
        tls.client_context(CERTIFICATE[:99] + b"\n-----END CERTIFICATE-----\n")
    with pytest.raises(ValueError, match="tls: cannot use the certificate chain"):
        tls.server_context(OTHER, KEY)
