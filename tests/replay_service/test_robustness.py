"""Invalid and excessive messages, of `benchmarks.service_fuzz` and `service_floods`."""

from __future__ import annotations

import pytest

from benchmarks import service_floods, service_fuzz


def test_a_server_goes_on_whatever_it_is_sent():
    assert service_fuzz.fuzz(500).faults() == []


@pytest.mark.slow
def test_a_server_goes_on_after_ten_thousand_messages():
    assert service_fuzz.fuzz(10_000, seed=1).faults() == []


def test_faults_are_found():
    findings = service_fuzz.Findings(1, 11.0, 100_000_000, 50, alive=False)
    assert len(findings.faults()) == 4


def test_no_flood_fills_a_server_or_stops_the_others():
    findings = service_floods.flood(0.07)
    assert [fault for finding in findings for fault in finding.faults()] == []
    answers = {finding.name: finding.answer for finding in findings}
    greeting = "expected at most 65536"
    assert greeting in answers["JSON before the greeting, socket"]
    assert greeting in answers["the same, in parts"]
    # gRPC itself refuses what is longer than a part.
    own, of_grpc = answers["JSON before the greeting, gRPC"], "larger than max"
    assert greeting in own or of_grpc in own
    request = "bytes of JSON in a message, expected at most 4194304"
    assert request in answers["JSON after the greeting, socket"]
    assert request in answers["JSON after the greeting, gRPC"]


def test_faults_of_floods_are_found():
    assert len(service_floods.Finding("some", 10.0, 10**9).faults()) == 2
    assert "some" in str(service_floods.Finding("some"))
