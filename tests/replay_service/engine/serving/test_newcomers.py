"""Connections without a greeting are few."""

from tfrl.replay_service import errors
from tfrl.replay_service.engine.serving import newcomers


class Session:
    def __init__(self):
        self.error = None

    def refuse(self, error):
        self.error = error


def test_the_oldest_of_its_transport_gives_way(monkeypatch):
    monkeypatch.setattr(newcomers, "_MOST_LOCAL", 3)
    monkeypatch.setattr(newcomers, "_MOST_REMOTE", 1)
    waiting = newcomers.Newcomers()
    local = [Session() for _ in range(4)]
    remote = [Session() for _ in range(2)]
    for session in local[:3]:
        waiting.add(session, is_local=True)
    for session in remote:
        waiting.add(session, is_local=False)
    assert isinstance(remote[0].error, errors.ReplayUnavailable)
    waiting.discard(local[0])
    waiting.add(local[3], is_local=True)
    assert [session.error for session in [*local, remote[1]]] == [None] * 5
    assert len(waiting) == 4
    waiting.discard(local[0])
