"""One thread sends the waiting items of all writers."""

import threading

import pytest

from tfrl.replay_service.writing import background_flusher


class _Stream:
    """Counts the calls of `tick`."""

    def __init__(self):
        self.ticked = threading.Event()

    def tick(self):
        self.ticked.set()
        return False


def test_a_thread_that_could_not_start_is_started_for_the_next_stream(monkeypatch):
    flusher = background_flusher.BackgroundFlusher()

    def fail(_):
        raise RuntimeError("can't start new thread")

    first, second = _Stream(), _Stream()
    with monkeypatch.context() as context:
        context.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError, match="can't start"):
            flusher.add(first)
    flusher.add(second)
    flusher._thread.name = "test"  # It does not end.
    flusher.event.set()
    assert second.ticked.wait(10)
    assert first.ticked.wait(10)
