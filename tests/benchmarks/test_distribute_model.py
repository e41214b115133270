"""The simulation of actors, shards and a learner, against cases worked by hand."""

import dataclasses
import math

import pytest

from benchmarks import distribute_model
from tfrl.replay_service import rate_limiters

# An actor makes an item each second and sends two together. A batch has two items, and
# an update takes a second. The shard takes 1/8 second to write an item, and 1/4 to
# sample one. Each item is sampled once, within a window of 8.
HAND = distribute_model.Case(
    "by hand",
    actors=1,
    shards=1,
    batch=2,
    step_time=1.0,
    steps_per_second=1.0,
    samples_per_insert=1.0,
    min_size=2,
    error_buffer=4.0,
    plain_division=True,
    items_per_message=2,
    batches_ahead=1,
    write_time=0.125,
    sample_time=0.25,
    item_bytes=1e6,
    weights_bytes=1e6,
    pull_period=0.5,
    publish_every=1,
    seconds=10.0,
)


def test_a_case_that_was_worked_by_hand():
    # Messages are made every 2.25 s: each takes 2 s to make and 1/4 to write, so they
    # are there at 2.25, 4.5, 6.75 and 9. After the first, the limiter lets the learner
    # be 2 samples ahead. So its first two batches are drawn by 2.75 and 3.25, the third
    # after the second message by 5, the fourth by 7.25 and the fifth by 9.5. Updates
    # begin at 2.75, 3.75, 5, 7.25 and 9.5.
    results = distribute_model.Model(HAND).run()
    assert results["inserts/s"] == pytest.approx(0.8)
    assert results["samples/s"] == pytest.approx(1.0)
    assert results["updates/s"] == pytest.approx(0.4)
    assert results["actors blocked, %"] == pytest.approx(10.0)
    assert results["learner waits, %"] == pytest.approx(100 - 45.0)
    assert results["shard busy, most, %"] == pytest.approx(100 * (1.0 + 2.5) / 10)
    assert results["inserts ahead, in samples"] == pytest.approx(8 - 10 - 2)
    assert results["half the sum of windows"] == pytest.approx(4)
    assert results["MB/s into a shard"] == pytest.approx(0.8)
    assert results["MB/s out of a shard"] == pytest.approx(1.0)


def test_the_lag_is_counted_from_the_pull_before_a_message_was_begun():
    # Updates end at 3.75, 4.75, 6 and 8.25. The messages that are inserted at 2.25,
    # 4.5, 6.75 and 9 are begun at 0, 2.25, 4.5 and 6.75 with the weights of update 0,
    # 0, 1 (pulled by 4.25) and 3 (pulled by 6.5).
    model = distribute_model.Model(HAND)
    model.run()
    assert model.lags == [0, 1, 2, 1]


def test_actors_are_as_busy_as_the_learner_lets_them():
    case = dataclasses.replace(
        distribute_model.CASES[2], step_time=0.05, error_buffer=1_024.0, seconds=60.0
    )
    results = distribute_model.Model(case).run()
    # An update takes 64 items of 8 samples each, 8 items a step of 50 ms.
    assert results["learner waits, %"] < 5
    duty = 64 / (8 * 4 * 500 * 0.05)
    # What fills the window and the least size is made once.
    once = 100 * 1_300 / (60 * 4 * 500)
    assert results["actors blocked, %"] == pytest.approx(100 * (1 - duty), abs=2 * once)
    assert abs(results["inserts ahead, in samples"]) <= 1_024


def test_whole_messages_do_not_fit_into_a_window_that_is_divided_plainly():
    case = next(c for c in distribute_model.CASES if c.whole_messages)
    small = dataclasses.replace(case, seconds=1.0)
    results = distribute_model.Model(small).run()
    assert (results["inserts/s"], results["updates/s"]) == (0, 0)
    assert math.isnan(results["policy lag, p50"])
    parts = dataclasses.replace(small, whole_messages=False)
    assert distribute_model.Model(parts).run()["updates/s"] > 10


def test_the_actors_of_a_dead_shard_go_on_at_others():
    case = dataclasses.replace(
        distribute_model.CASES[-1], actors=64, shards=4, batch=64, dies_at=1, seconds=4
    )
    model = distribute_model.Model(case)
    results = model.run()
    dead, *living = (shard.counts for shard in model.shards)
    assert 0 < dead.samples < min(counts.samples for counts in living) / 2
    assert results["updates/s"] > 0.9 / case.step_time


def test_each_case_has_a_limiter_that_a_table_accepts():
    for case in distribute_model.CASES:
        rate_limiters.check_satisfiable(case.limiter(), 10**6)
