"""Invalid messages; `benchmarks.service_fuzz` makes them."""

from __future__ import annotations

import pytest

from benchmarks import service_fuzz


def test_a_server_goes_on_whatever_it_is_sent():
    assert service_fuzz.fuzz(500).faults() == []


@pytest.mark.slow
def test_a_server_goes_on_after_ten_thousand_messages():
    assert service_fuzz.fuzz(10_000, seed=1).faults() == []


def test_faults_are_found():
    findings = service_fuzz.Findings(1, 11.0, 100_000_000, 50, alive=False)
    assert len(findings.faults()) == 4
