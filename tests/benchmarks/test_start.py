"""The parts of a program's start, by a clock that the test sets."""

import importlib
import sys

import pytest

from benchmarks import startup
from benchmarks.workers import start


class Clock:
    now = 0.5

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_parts_do_not_count_the_parts_within_them(clock):
    parts = start.Parts(clock, 0.0)
    with parts.part("building"):
        clock.now += 1
        with parts.part("import"):
            clock.now += 2
        clock.now += 4
    parts.charge()
    assert parts.seconds == {"Python itself": 0.5, "building": 5, "import": 2}


def test_a_timed_function_returns_its_result(clock):
    parts = start.Parts(clock, 0.5)

    def double(x):
        clock.now += x
        return 2 * x

    assert parts.timed(double, "tracing")(3) == 6
    assert parts.seconds == {"Python itself": 0, "tracing": 3}


def test_imports_count_to_their_package(clock, tmp_path, monkeypatch):
    (tmp_path / "gymnasium.py").write_text("import helper\n")
    (tmp_path / "helper.py").write_text("import sys\nsys.clock.now += 4\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "clock", clock, raising=False)
    for name in ("gymnasium", "helper"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    parts = start.Parts(clock, 0.5)
    monkeypatch.setattr(sys, "meta_path", [start.Imports(parts), *sys.meta_path])
    importlib.import_module("gymnasium")
    assert parts.seconds["import of gymnasium"] == 4


@pytest.mark.slow
def test_a_case_is_measured_cold_and_warm(tmp_path):
    cold, warm = (
        startup.first_update("DQN on CartPole-v1", "cpu", tmp_path) for _ in range(2)
    )
    assert cold["parts"].keys() == warm["parts"].keys()
    assert {"tracing", "import of tensorflow", "writing a report"} <= {*cold["parts"]}
