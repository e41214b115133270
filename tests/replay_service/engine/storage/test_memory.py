"""Memory is checked before it is used."""

import pytest

from tfrl.replay_service import errors
from tfrl.replay_service.engine.storage import memory


def test_reserved_bytes_are_checked_together(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 10 << 30)
    reserved = memory.Reserved()
    reserved.add(6 << 30)
    with pytest.raises(errors.ResourceExhaustedError, match="not enough memory"):
        reserved.add(5 << 30)
    assert reserved.size == 6 << 30
    reserved.add(-(6 << 30))
    reserved.add(5 << 30)
    assert reserved.size == 5 << 30


def test_few_reserved_bytes_are_not_checked(monkeypatch):
    def check(size):
        raise AssertionError

    monkeypatch.setattr(memory, "check", check)
    reserved = memory.Reserved()
    for _ in range(1000):
        reserved.add(32 << 20)
        reserved.add(-(32 << 20))
