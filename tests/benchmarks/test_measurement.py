import pathlib

import pytest

from benchmarks import measurement, processes


class Workers:
    """In the place of a pool: workers whose tasks take a time that is made up."""

    def __init__(self, speeds):
        self._speeds = speeds
        self.order = []
        self.closed = 0

    def get(self, name):
        if name not in self._speeds:
            raise processes.WorkerError("is not there")
        return Worker(name, self._speeds[name], self.order)

    def close(self):
        self.closed += 1


class Worker:
    def __init__(self, name, speed, order):
        self._name, self._speed, self._order = name, speed, order

    def make(self, task, settings):
        return 0, {"task": task, **settings}

    def run(self, task, count):
        self._order.append((self._name, count))
        if self._speed is None and len(self._order) > 5:
            raise processes.WorkerError("broke")
        seconds = count / (self._speed or 100)
        return processes.Window(
            seconds, seconds / 2, {"iterations": count, "environment steps": 8 * count}
        )


def _session(speeds, quick=False):
    lines = []
    session = measurement.Session(
        quick=quick, rounds=2, seconds=1.0, pool=Workers(speeds), say=lines.append
    )
    return session, lines


def _group(*names, **options):
    contenders = [measurement.Contender(name, name, "task") for name in names]
    return measurement.Group("title", tuple(contenders), (names[0],), **options)


def test_contenders_are_measured_in_turn():
    session, _ = _session({"a": 1000, "b": 100})
    session.measure("benchmark", [_group("a", "b")])
    assert [name for name, _ in session.pool.order[-4:]] == ["a", "b", "a", "b"]


def test_a_window_is_as_long_as_asked():
    session, _ = _session({"a": 1000, "b": 100})
    session.measure("benchmark", [_group("a", "b")])
    assert dict(session.pool.order[-2:]) == {"a": 1000, "b": 100}


def test_a_group_may_fix_the_count():
    session, _ = _session({"a": 1000, "b": 100})
    session.measure("benchmark", [_group("a", "b", count=16)])
    assert session.pool.order == [("a", 2), ("b", 2)] + 2 * [("a", 16), ("b", 16)]


def test_values_are_rates_in_each_unit():
    session, _ = _session({"a": 1000})
    units = ("iterations", "environment steps")
    session.measure("benchmark", [_group("a", units=units)])
    first, second = session.results
    assert (first.unit, second.unit) == ("iterations/s", "environment steps/s")
    assert first.series[0].values == pytest.approx([1000, 1000], rel=1e-9)
    assert second.series[0].values == pytest.approx([8000, 8000], rel=1e-9)


def test_a_contenders_own_seconds_may_be_counted():
    session, _ = _session({"a": 1000})
    session.clock = "cpu"
    session.measure("benchmark", [_group("a")])
    assert session.results[0].series[0].values == pytest.approx([2000, 2000], rel=1e-9)
    assert session.windows[0].cpu_seconds == pytest.approx(session.seconds, rel=1e-9)


def test_who_is_missing_is_named_and_the_rest_goes_on():
    session, lines = _session({"a": 1000})
    session.measure("benchmark", [_group("a", "gone", "lost")])
    (result,) = session.results
    assert [series.label for series in result.series] == ["a"]
    assert result.notes == ["gone; lost: not measured: is not there"]
    assert "gone; lost: not measured" in lines[0]


def test_who_fails_on_the_way_keeps_what_was_measured():
    session, _ = _session({"a": 1000, "weak": None})
    session.measure("benchmark", [_group("a", "weak", count=8)])
    (result,) = session.results
    assert [len(series.values) for series in result.series] == [2, 1]
    assert result.notes == ["weak: failed: broke"]


@pytest.mark.parametrize(("quick", "closed"), [(False, 2), (True, 0)])
def test_only_a_quick_run_keeps_its_workers(quick, closed):
    session, _ = _session({"a": 1000}, quick)
    session.measure("benchmark", [_group("a"), _group("a")])
    assert session.pool.closed == closed


OTHER = pathlib.Path("/other")


def _against(names, speeds, rounds=2, **options):
    session, lines = _session(speeds)
    session.against, session.rounds = OTHER, rounds
    group = measurement.Group(
        "title",
        tuple(measurement.Contender(name, name, "task") for name in names),
        references=("torch",),
        **options,
    )
    session.measure("benchmark", [group])
    return session, lines


def test_another_checkouts_contenders_are_measured_in_the_same_rounds():
    speeds = {"tfrl": 1000, "tfrl@/other": 500}
    session, lines = _against(["tfrl"], speeds, rounds=3)
    assert session.pool.order[-6:] == 3 * [("tfrl", 1000), ("tfrl@/other", 1000)]
    (result,) = session.results
    assert [series.label for series in result.series] == ["tfrl", "other: tfrl"]
    assert "2.000" in lines[0]


def test_the_checkouts_change_places_where_others_come_between():
    names = ("tfrl", "replay_unix")
    speeds = {name + where: 100 for name in names for where in ("", "@/other")}
    session, _ = _against(names, speeds, count=8)
    a, other_a, b, other_b = [(name, 8) for name in speeds]
    assert session.pool.order[-8:-4] == [a, other_a, b, other_b]
    assert session.pool.order[-4:] == [other_a, a, other_b, b]


def test_another_checkout_does_just_what_ours_does():
    session, _ = _against(["tfrl"], {"tfrl": 1000, "tfrl@/other": 100})
    done = {
        name: [count for who, count in session.pool.order if who == name]
        for name in ("tfrl", "tfrl@/other")
    }
    assert done["tfrl"] == done["tfrl@/other"]
    assert len(done["tfrl"]) > 3


def test_peers_and_floors_are_left_out_beside_another_checkout():
    speeds = dict.fromkeys(("tfrl", "tfrl@/other", "torch", "floors"), 100)
    session, _ = _against(["tfrl", "torch", "floors"], speeds, count=8)
    assert {name for name, _ in session.pool.order} == {"tfrl", "tfrl@/other"}
    assert session.results[0].references == ()


def test_a_group_of_peers_and_floors_alone_is_left_out():
    session, lines = _against(["torch", "floors"], {"torch": 1, "floors": 1})
    assert (session.results, lines) == ([], [])


def test_who_is_missing_in_another_checkout_is_named():
    session, lines = _against(["tfrl"], {"tfrl": 100}, count=8)
    assert "other: tfrl: not measured: is not there" in lines[0]
    assert [series.label for series in session.results[0].series] == ["tfrl"]


def test_another_checkout_may_have_settings_of_its_own():
    contender = measurement.Contender(
        "tfrl", "tfrl:writer", "task", {"a": 1, "address": "x"}, {"address": "y"}
    )
    assert contender.in_checkout(OTHER) == measurement.Contender(
        "other: tfrl", "tfrl:writer@/other", "task", {"a": 1, "address": "y"}
    )
