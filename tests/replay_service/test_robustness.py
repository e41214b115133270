"""Invalid messages, and more of everything than a server may hold."""

from __future__ import annotations

import pathlib

import pytest

from tests.replay_service import floods, fuzz

DATA = pathlib.Path(__file__).parent / "data"
PAIR = tuple((DATA / name).read_bytes() for name in ("certificate.pem", "key.pem"))


@pytest.mark.parametrize("pair", [None, PAIR], ids=["plain", "tls"])
def test_a_server_goes_on_whatever_it_is_sent(pair):
    assert fuzz.fuzz(500, pair=pair).faults() == []


@pytest.mark.slow
@pytest.mark.parametrize("pair", [None, PAIR], ids=["plain", "tls"])
def test_a_server_goes_on_after_ten_thousand_messages(pair):
    assert fuzz.fuzz(10_000, seed=1, pair=pair).faults() == []


def test_faults_are_found():
    findings = fuzz.Findings(1, 11.0, 100_000_000, 50, alive=False)
    assert len(findings.faults()) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "pair"),
    [
        pytest.param(0.07, None, id="plain"),
        pytest.param(0.07, PAIR, id="tls"),
        pytest.param(1.0, None, id="plain, in full"),
        pytest.param(1.0, PAIR, id="tls, in full"),
    ],
)
def test_no_flood_fills_a_server_or_stops_the_others(share, pair):
    findings = floods.flood(share, pair)
    assert [fault for finding in findings for fault in finding.faults()] == []
    answers = {finding.name: finding.answer for finding in findings}
    for way in ("TCP",) if pair else ("socket", "TCP"):
        greeting = answers[f"JSON before the greeting, {way}"]
        assert "expected at most 65536" in greeting
        request = answers[f"JSON after the greeting, {way}"]
        assert "bytes of JSON in a message, expected at most 4194304" in request


def test_faults_of_floods_are_found():
    assert len(floods.Finding("some", 10.0, 10**9).faults()) == 2
