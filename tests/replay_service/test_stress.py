"""Concurrent writers and samplers, as `stress` describes them."""

from __future__ import annotations

import pytest

from tests.replay_service import stress


@pytest.mark.slow
def test_nothing_is_lost_torn_or_counted_wrongly():
    findings = stress.stress(0.5, writers=2, samplers=2)
    assert findings.faults() == []
    assert findings.inserted["ratio"] > stress.MIN_SIZE


@pytest.mark.slow
def test_nothing_is_lost_in_a_minute_and_memory_stays_as_it_is():
    findings = stress.stress(60, dataset=True)
    assert findings.faults() == []


def test_faults_are_found():
    right = stress.Findings()
    names = ("queue", "ratio", "images")
    right.written.update(dict.fromkeys(names, 2))
    right.sampled.update(dict.fromkeys(names, 2))
    right.inserted = right.drawn = dict.fromkeys(names, 2)
    right.queued = [(0, 0), (0, 1)]
    right.held = [1_000_000] * 6
    right.grown = [0]
    assert right.faults() == []
    right.queued = [(0, 0), (0, 0)]
    right.ratios = [1_001.0]
    right.held = [1_000_000] * 5 + [200_000_000]
    right.grown = [100_000_000]
    right.written["images"] = 3
    right.drawn = {**right.drawn, "ratio": 1}
    assert len(right.faults()) == 6
