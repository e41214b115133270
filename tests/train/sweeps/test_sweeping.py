"""What a sweep does when a signal arrives, with runs that train nothing."""

import signal

import numpy as np
import pytest

from tfrl.train.sweeps import sweep_checkpoint, sweeping


class Runs:
    """Runs during whose start, or during whose first iterations, Ctrl-C is pressed."""

    def __init__(self, interrupted):
        self.done, self._interrupted = [], interrupted

    def start(self, state):
        self._do("start")

    def advance(self, iterations):
        self._do(iterations)
        return [np.zeros(1)] * 3

    def running_step(self):
        return None

    def state(self):
        return [np.zeros(1)]

    def _do(self, what):
        self.done.append(what)
        if what == self._interrupted:
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("interrupted", "done", "saved"),
    [("start", ["start"], []), (5, ["start", 5], [5]), (2, ["start", 5, 5, 2], [12])],
)
def test_ctrl_c_ends_a_sweep_after_what_it_was_doing(
    tmp_path, interrupted, done, saved
):
    runs, results = Runs(interrupted), sweep_checkpoint.SweepMeasurements()
    checkpoint = sweep_checkpoint.SweepCheckpoint(tmp_path, {})
    with pytest.raises(KeyboardInterrupt):
        sweeping._train(runs, None, results, checkpoint, 12, 5, 100, None)
    assert runs.done == done
    found = checkpoint.restore()
    assert (found[0].iterations[-1:] if found else []) == saved
