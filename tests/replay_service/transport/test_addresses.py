"""Which addresses need a token."""

import pytest

from tfrl.replay_service.transport import addresses


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]"]
)
def test_this_host_alone_needs_none(host):
    addresses.check_exposure(host, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "replay.example.org"])
def test_other_hosts_need_one(host):
    addresses.check_exposure(host, "token")
    for token in (None, ""):
        with pytest.raises(ValueError, match="which other hosts can reach"):
            addresses.check_exposure(host, token)


def test_hosts_with_colons_get_brackets():
    assert addresses.join("localhost", 1) == "localhost:1"
    assert addresses.join("::1", 1) == addresses.join("[::1]", 1) == "[::1]:1"


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("localhost:1", ("localhost", 1)),
        ("10.0.0.7:65535", ("10.0.0.7", 65535)),
        ("[::1]:8000", ("::1", 8000)),
    ],
)
def test_addresses_have_a_host_and_a_port(address, parts):
    assert addresses.split(address) == parts
    assert addresses.join(*parts) == address


@pytest.mark.parametrize(
    "address", ["", "localhost", "localhost:", ":1", "h:x", "h:65536", "dns:///h:1x"]
)
def test_what_has_no_host_or_port_is_no_address(address):
    with pytest.raises(
        ValueError, match=r"server_address: got .*, expected 'host:port'"
    ):
        addresses.split(address)
