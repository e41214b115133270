import threading
import types

from tfrl.environments.boundary import running_steps
from tfrl.train.runs import slow_steps


class Environment:
    """Says which of its steps is running, and when it was asked again."""

    def __init__(self):
        self._step = None
        self._asked = threading.Semaphore(0)

    def running_step(self):
        self._asked.release()
        return self._step

    def runs(self, step):
        """Waits until the watcher has seen that `step` is running."""
        self._step = step
        while self._asked.acquire(blocking=False):
            pass
        for _ in range(3):  # It may be within a look at the step before.
            assert self._asked.acquire(timeout=60.0)


def test_a_step_that_takes_long_is_named_while_it_lasts_and_then_again(monkeypatch):
    clock = types.SimpleNamespace(now=0.0)
    fake = types.SimpleNamespace(monotonic=lambda: clock.now)
    monkeypatch.setattr(slow_steps, "time", fake)
    environment, lines = Environment(), []
    running_steps.register(environment)
    with slow_steps.named(lines.append, seconds=0.1):
        for step in range(5):  # Short steps, longer than the limit together.
            environment.runs(f"step {step} of Quick")
            clock.now += 0.09
        environment.runs("step 5 of Slow")
        assert not lines
        for now in (0.1, 0.15, 0.2):
            clock.now = 0.45 + now
            environment.runs("step 5 of Slow")
    assert lines == [
        "step 5 of Slow has taken 0.1 seconds so far.",
        "step 5 of Slow has taken 0.2 seconds so far.",
    ]
    assert not any(thread.name == "slow steps" for thread in threading.enumerate())
