"""What the learner knows of actors from their reports."""

import numpy as np
import pytest

from tfrl import replay_service, train
from tfrl.distribute.roles import actor_reports


@pytest.fixture(scope="module")
def client():
    server = replay_service.Server([actor_reports.make_table()])
    yield server.localhost_client()
    server.stop()


def seen(steps, episodes, average_return):
    return lambda: train.IterationInfo(0, 0, steps, episodes, average_return, 0.0)


def test_reports_of_all_actors_are_added_up_and_count_who_is_alive(client, monkeypatch):
    collected = actor_reports.Collected(client)
    assert collected.num_alive() == 0
    first, second = actor_reports.Reporter(client, 0), actor_reports.Reporter(client, 1)
    first.report(seen(100, 2, 20.0))
    second.report(seen(50, 0, 0.0))
    first.report(seen(120, 3, 30.0))  # Not due yet.
    collected.take()
    assert collected.counters() == {
        "environment_steps": 150,
        "episodes": 2,
        "average_return": 20.0,  # The second actor has finished no episode.
    }
    assert collected.num_alive() == 2
    second._due = 0.0
    second.report(seen(60, 1, 10.0))
    collected.take()  # Not due yet.
    assert collected.counters()["environment_steps"] == 150
    collected._due = 0.0
    collected.take()
    assert collected.counters() == {
        "environment_steps": 160,
        "episodes": 3,
        "average_return": 15.0,
    }
    monkeypatch.setattr(actor_reports, "_ALIVE", -1.0)  # No report is as new as that.
    assert collected.num_alive() == 0


def test_reports_are_taken_where_the_server_is_attempted_and_due(client):
    actor_reports.Reporter(client, 0).report(seen(10, 0, 0.0))
    calls = []
    collected = actor_reports.Collected(client, calls.append)
    collected.take()
    collected.take()  # Not due yet.
    assert collected.counters()["environment_steps"] == 0  # There is no server.
    [call] = calls
    call()
    assert collected.counters()["environment_steps"] == 10


@pytest.mark.parametrize(
    "report",
    [
        [0, np.nan, 1, 5],
        [0, 1, np.inf, 5],
        [np.nan, 1, 1, 5],
        [0, -1, 1, 5],
        [0, 0.5, 1, 5],
        [0, 1e300, 1, 5],
    ],
)
def test_a_report_that_no_actor_sends_is_left_out(client, report, caplog):
    collected = actor_reports.Collected(client)
    for values in (report, [1, 10, 1, 3.0]):
        client.insert(np.array(values, np.float64), {actor_reports.DEFAULT_TABLE: 1.0})
    collected.take()
    assert collected.counters() == {
        "environment_steps": 10,
        "episodes": 1,
        "average_return": 3.0,
    }
    assert collected.num_alive() == 1
    [record] = caplog.records
    assert "expected whole numbers of 0 or more" in record.getMessage()
