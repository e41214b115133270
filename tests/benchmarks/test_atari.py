import subprocess
import sys
import types

import numpy as np

from benchmarks import atari
from tfrl import testing
from tfrl.environments import batched_py_environment

CHILD = """
import sys, time
while time.process_time() < 0.3:
    pass
print(flush=True)
sys.stdin.read()
"""


def test_processor_time_includes_that_of_running_children():
    before = atari._processor_seconds()
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        assert atari._processor_seconds() - before > 0.28
        child.stdin.close()


def test_a_step_is_counted_for_every_member(monkeypatch):
    seconds, processor_seconds = iter([10.0, 11.0]), iter([1.0, 3.0])
    clock = types.SimpleNamespace(perf_counter=lambda: next(seconds))
    monkeypatch.setattr(atari, "time", clock)
    monkeypatch.setattr(atari, "_processor_seconds", lambda: next(processor_seconds))
    environment = batched_py_environment.BatchedPyEnvironment(
        [testing.CountingEnvironment(length=9) for _ in range(3)]
    )
    environment.reset()
    # 5 steps of 3 members in one second, and in two of the processor.
    assert atari.steps_per_second(environment, 5) == (15.0, 7.5)
    assert np.all(environment.current_time_step().reward == 5)
