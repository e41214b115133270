"""The log of a server does not grow with the number of strangers."""

import logging
import time

from tfrl.replay_service.engine.serving import event_log


def test_refusals_are_counted_when_they_are_many(caplog, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    events = event_log.EventLog()
    with caplog.at_level(logging.WARNING, "tfrl.replay_service"):
        for i in range(50):
            events.refused("ipv4:127.0.0.1:1", f"It sent {i}." + 10_000 * "x")
        assert len(caplog.records) == 20
        assert all(len(record.getMessage()) < 600 for record in caplog.records)
        now[0] += 11.0
        events.refused("ipv4:127.0.0.1:1", "again")
    *_, left_out, last = caplog.messages
    assert left_out == "Refused clients 30 more times."
    assert last == "Refused a client from ipv4:127.0.0.1:1: again"
