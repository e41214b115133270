"""The benchmark of EnvPool's steps."""

import numpy as np
import pytest

from benchmarks import envpool as benchmark


def test_all_ways_take_the_steps_that_are_counted(monkeypatch):
    pytest.importorskip("envpool")
    made = []

    def load(task, members):
        made.append(own(task, members))
        return made[-1]

    own = benchmark._load
    monkeypatch.setattr(benchmark, "_load", load)
    found = benchmark.walks("Pendulum-v1", 2)
    assert list(found) == ["EnvPool alone", "Python", "compiled loop"]
    for walk in found.values():
        walk(5)
    for environment in made:
        assert np.all(environment.get_info()["elapsed_step"] == 5)


def test_the_time_is_that_of_a_step(monkeypatch):
    wall, processor = iter([10.0, 11.0]), iter([1.0, 3.0])
    monkeypatch.setattr(benchmark.time, "perf_counter", lambda: next(wall))
    monkeypatch.setattr(benchmark.time, "process_time", lambda: next(processor))
    counts = []
    assert benchmark.microseconds_of(counts.append, 4) == (250_000, 500_000)
    assert counts == [4]
